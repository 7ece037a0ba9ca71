package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

// traces compares the front door's CPU for an event with traces and without, in turns. This process is the receiver.
func (b *bench) traces(ctx context.Context) error {
	list, err := b.contenders()
	if err != nil {
		return err
	}
	var received atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received.Add(1) }))
	defer receiver.Close()
	off, on := list[1], list[1]
	on.Env = append(slices.Clone(on.Env), "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL)
	var ratios []float64
	for n := range 3 * b.Readings {
		var cpu [2]time.Duration
		for i := range cpu {
			i = (i + n) % 2 // each is first in half of the turns
			if cpu[i], err = b.cpu(ctx, []contender{off, on}[i]); err != nil {
				return err
			}
		}
		fmt.Fprintf(b.progress, "without traces %.1f µs, with traces %.1f µs\n", micros(cpu[0]), micros(cpu[1]))
		ratios = append(ratios, float64(cpu[1])/float64(cpu[0]))
	}
	median := table.MedianOf(ratios, func(r float64) float64 { return r })
	b.report.Most("CPU of the front door for an event with traces, as a multiple of that without", median, 1.02, "%.3f")
	b.report.Note("the lowest of the turns", slices.Min(ratios), "%.3f")
	b.report.Note("the highest", slices.Max(ratios), "%.3f")
	b.report.Note("requests of front doors to the receiver of traces", float64(received.Load()), "%.0f")
	return nil
}

// cpu returns the CPU time of a contender for an event at full load.
func (b *bench) cpu(ctx context.Context, c contender) (_ time.Duration, err error) {
	if err := b.redis.FlushAll(ctx).Err(); err != nil {
		return 0, fmt.Errorf("empty Redis: %w", err)
	}
	s, err := b.serve(ctx, c)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if _, err := door.Fire(ctx, s.Addr, b.events(s, b.Requests/20), 0); err != nil { // to warm up
		return 0, err
	}
	before, err := s.CPU()
	if err != nil {
		return 0, err
	}
	if _, err := door.Fire(ctx, s.Addr, b.events(s, b.Requests), 0); err != nil {
		return 0, err
	}
	after, err := s.CPU()
	return (after - before) / time.Duration(b.Requests), err
}
