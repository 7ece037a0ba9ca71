package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

// traces compares the CPU for an event of two front doors, one of which has traces. This process is the receiver.
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
	for range 2 * b.Readings {
		cpu, err := b.both(ctx, off, on)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.progress, "without traces %.1f µs, with traces %.1f µs\n", micros(cpu[0]), micros(cpu[1]))
		ratios = append(ratios, float64(cpu[1])/float64(cpu[0]))
	}
	median := table.MedianOf(ratios, func(r float64) float64 { return r })
	b.report.Most("CPU of the front door for an event with traces, as a multiple of that without", median, 1.02, "%.3f")
	b.report.Note("the lowest of the turns", slices.Min(ratios), "%.3f")
	b.report.Note("the highest", slices.Max(ratios), "%.3f")
	b.report.Note("requests of the front door to the receiver of traces", float64(received.Load()), "%.0f")
	return nil
}

// both returns the CPU time for an event of two contenders that work at the same time, so that what else the machine
// does is the same for both.
func (b *bench) both(ctx context.Context, contenders ...contender) (cpu [2]time.Duration, err error) {
	if err := b.redis.FlushAll(ctx).Err(); err != nil {
		return cpu, fmt.Errorf("empty Redis: %w", err)
	}
	var servers [2]*server
	for i, c := range contenders {
		if servers[i], err = b.serve(ctx, c); err != nil {
			return cpu, err
		}
		defer func() { err = errors.Join(err, servers[i].Stop()) }()
		if _, err := door.Fire(ctx, servers[i].Addr, b.events(servers[i], b.Requests/20), 0); err != nil { // to warm up
			return cpu, err
		}
	}
	var events [2][][]byte
	for i, s := range servers {
		events[i] = b.events(s, b.Requests)
	}
	var failed [2]error
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			before, err := s.CPU()
			_, err2 := door.Fire(ctx, s.Addr, events[i], 0)
			after, err3 := s.CPU()
			cpu[i], failed[i] = (after-before)/time.Duration(b.Requests), errors.Join(err, err2, err3)
		})
	}
	all.Wait()
	return cpu, errors.Join(failed[:]...)
}
