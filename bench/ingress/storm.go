package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

// perRun is the number of progress events of a busy run in a second; the worker joins more frequent ones.
const perRun = 10

// storm sends events while many runs write their progress to the same Redis, at half of the front door's rate without
// them.
func (b *bench) storm(ctx context.Context) (err error) {
	list, err := b.contenders()
	if err != nil {
		return err
	}
	if err := b.redis.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("empty Redis: %w", err)
	}
	s, err := b.serve(ctx, list[1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	full, err := door.Fire(ctx, s.Addr, b.events(s, b.Requests/4), 0)
	if err != nil {
		return err
	}
	stop, written := b.progressOf(ctx, b.Storm)
	half, err := door.Fire(ctx, s.Addr, b.events(s, b.Requests/2), time.Duration(2*float64(time.Second)/full.Rate()))
	stop()
	if err != nil {
		return err
	}
	waiting, err := s.waiting(ctx, b.redis, b.Requests/4+b.Requests/2)
	if err != nil {
		return err
	}
	b.report.Most(fmt.Sprintf("events lost while %d runs write %d times a second each", b.Storm, perRun),
		float64(int64(b.Requests/4+b.Requests/2)-waiting), 0, "%.0f")
	b.report.Note("p99 of the answer meanwhile", table.Milliseconds(half.Percentile(.99)), "%.1f ms")
	b.report.Note("pieces written meanwhile, a second", float64(written.Load())/half.Wall.Seconds(), "%.0f")
	return nil
}

// progressOf simulates that many runs until stop, which waits for them.
func (b *bench) progressOf(ctx context.Context, runs int) (stop func(), written *atomic.Int64) {
	ctx, cancel := context.WithCancel(ctx)
	written = new(atomic.Int64)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			tick := time.NewTicker(time.Second / perRun)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				err := b.redis.XAdd(ctx, &redis.XAddArgs{
					Stream: fmt.Sprintf("bench:run:%d", i), MaxLen: 5000, Approx: true,
					Values: []any{"e", `{"kind":"text","text":"some words of an answer"}`},
				}).Err()
				if err == nil {
					written.Add(1)
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }, written
}
