package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

// arrival is the result of sending events, at full load and then at a rate.
type arrival struct{ full, paced door.Load }

// enqueue measures the effect of pages and runs on incoming events, with and without, in turns.
func (b *bench) enqueue(ctx context.Context) (err error) {
	s, err := b.set(ctx, b.Runs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	if _, err := s.arrive(ctx, 0); err != nil { // to warm up
		return err
	}
	alone, err := s.arrive(ctx, 0)
	if err != nil {
		return err
	}
	interval := time.Duration(2 * float64(time.Second) / alone.full.Rate())
	if err := s.watch(ctx); err != nil {
		return err
	}
	var quiet, busy []arrival
	for range b.Rounds {
		without, err := s.arrive(ctx, interval)
		if err != nil {
			return err
		}
		var with arrival
		all, _, err := s.write(ctx, joint, func() (err error) { with, err = s.arrive(ctx, interval); return err })
		if err != nil {
			return err
		}
		fmt.Fprintf(b.progress, "%.0f events/s without, %.0f with what pages see, p99 %v\n", without.full.Rate(),
			with.full.Rate(), all.Percentile(.99))
		quiet, busy = append(quiet, without), append(busy, with)
	}
	ratio := func(of func(arrival) float64) float64 { return table.MedianOf(busy, of) / table.MedianOf(quiet, of) }
	late := func(list []arrival) float64 {
		return table.MedianOf(list, func(a arrival) float64 { return table.Milliseconds(a.paced.Percentile(.99)) })
	}
	r := &b.report
	r.Note("events that the front door is sent, half of what it takes at most, a second",
		float64(time.Second)/float64(interval), "%.0f")
	r.Least("of these, taken in time while pages are open and runs write",
		ratio(func(a arrival) float64 { return a.paced.Rate() }), 0.98, "%.2f")
	r.Note("p99 of their answers", late(busy), "%.1f ms")
	r.Note("the same when runs are silent", late(quiet), "%.1f ms")
	r.Note("the most it takes meanwhile, as a multiple of when runs are silent",
		ratio(func(a arrival) float64 { return a.full.Rate() }), "%.2f")
	return nil
}

// arrive sends Slack events, half of them at full load, and then the others at an interval, if it is set.
func (s *stage) arrive(ctx context.Context, interval time.Duration) (a arrival, err error) {
	send := func(interval time.Duration) (door.Load, error) {
		l, err := door.Fire(ctx, s.front.Addr, s.slack.Requests(s.front.Addr, "/slack/events", s.Requests/2), interval)
		if err == nil && l.Taken != int64(len(l.Delays)) {
			err = fmt.Errorf("of %d events, %d were taken", len(l.Delays), l.Taken)
		}
		return l, err
	}
	if a.full, err = send(0); err != nil || interval == 0 {
		return a, err
	}
	a.paced, err = send(interval)
	return a, err
}
