package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/store"
)

// idle observes a fleet without tasks.
func (b *bench) idle(ctx context.Context) error {
	o, err := b.observe(ctx)
	if err != nil {
		return err
	}
	r := &b.report
	r.Most("connections of an idle worker", float64(o.connections)/float64(b.Workers), 10, "%.1f")
	r.Most("commands a second of the idle fleet", o.commands, 1500, "%.0f")
	r.Most("Redis' CPU, per cent of a core", 100*o.cpu, 4, "%.1f")
	return nil
}

// start measures from Submit to the claim of a worker, by Redis' clock, in an idle fleet.
func (b *bench) start(ctx context.Context) error {
	var delays []time.Duration
	for i := range b.Picked {
		ids, err := b.submit(ctx, fmt.Sprint("picked", i, "-"), "numbers 1", 1)
		if err != nil {
			return err
		}
		var rec store.Record
		if err := b.until(ctx, "a task runs", func() (ok bool, err error) {
			rec, err = b.store.Get(ctx, ids[0])
			return rec.State != store.Waiting, err
		}); err != nil {
			return err
		}
		delays = append(delays, rec.Started.Sub(rec.Created))
	}
	slices.Sort(delays)
	all := door.Load{Delays: delays}
	b.report.Most("from Submit to the start of the run, p50", table.Milliseconds(all.Percentile(.5)), 100, "%.0f ms")
	b.report.Most("the same, p99", table.Milliseconds(all.Percentile(.99)), 350, "%.0f ms")
	return nil
}

// silent observes a fleet whose runs write nothing.
func (b *bench) silent(ctx context.Context) error {
	idle, err := b.redis.Usage(ctx)
	if err != nil {
		return err
	}
	if _, err := b.submit(ctx, "silent", "wait", b.Runs); err != nil {
		return err
	}
	if err := b.running(ctx, b.Runs); err != nil {
		return err
	}
	o, err := b.observe(ctx)
	if err != nil {
		return err
	}
	r := &b.report
	r.Most("connections that a run adds", float64(o.connections+1-idle.Connections)/float64(b.Runs), 0.1, "%.2f")
	r.Most("commands a second with silent runs", o.commands, 3000, "%.0f")
	r.Most("of these, hmget", float64(o.calls["hmget"])/b.Look.Seconds(), 1500, "%.0f")
	r.Note("Redis' CPU for a silent run, per cent of a core", 100*o.cpu/float64(b.Runs), "%.3f")
	return nil
}

// talking observes a fleet in which a fifth as many runs write text as a model does.
func (b *bench) talking(ctx context.Context) error {
	n := max(1, b.Runs/5)
	order := fmt.Sprint("speak ", int(20*(3*b.Look+time.Minute).Seconds()))
	if _, err := b.submit(ctx, "talking", order, n); err != nil {
		return err
	}
	if err := b.running(ctx, n); err != nil {
		return err
	}
	o, err := b.observe(ctx)
	if err != nil {
		return err
	}
	b.report.Note("commands a second for a run that writes 20 words a second", o.commands/float64(n), "%.1f")
	b.report.Note("Redis' CPU for it, per cent of a core", 100*o.cpu/float64(n), "%.3f")
	return nil
}

func (b *bench) running(ctx context.Context, n int) error {
	return b.until(ctx, fmt.Sprint(n, " tasks run"), func() (bool, error) {
		counts, err := b.store.Counts(ctx)
		return counts.Running == n, err
	})
}

// waiting observes what a backlog of which a limit lets one task run adds to an idle fleet.
func (b *bench) waiting(ctx context.Context) error {
	idle, err := b.observe(ctx)
	if err != nil {
		return err
	}
	empty, err := b.redis.Usage(ctx)
	if err != nil {
		return err
	}
	if _, err := b.submit(ctx, "waiting", "wait", b.Waiting+1); err != nil {
		return err
	}
	if err := b.running(ctx, 1); err != nil {
		return err
	}
	o, err := b.observe(ctx)
	if err != nil {
		return err
	}
	full, err := b.redis.Usage(ctx)
	if err != nil {
		return err
	}
	r := &b.report
	r.Most("commands a second that a backlog behind a limit adds", o.commands-idle.commands, 1000, "%.0f")
	r.Most("Redis' CPU for it, per cent of a core", 100*(o.cpu-idle.cpu), 2, "%.1f")
	r.Most("Redis' memory for a waiting task, KB", float64(full.Memory-empty.Memory)/float64(b.Waiting)/1024, 4, "%.1f")
	return nil
}

// line counts the deliveries of tasks that a limit lets run one after the other.
func (b *bench) line(ctx context.Context) error {
	ids, err := b.submit(ctx, "line", "numbers 1", b.Picked)
	if err != nil {
		return err
	}
	deliveries := 0
	for _, id := range ids {
		if err := b.until(ctx, "a task has ended", func() (bool, error) {
			rec, err := b.store.Get(ctx, id)
			if err != nil || rec.State != store.Ended {
				return false, err
			}
			deliveries += 1 + rec.Delivery
			return true, nil
		}); err != nil {
			return err
		}
	}
	b.report.Most("deliveries for a run behind a limit", float64(deliveries)/float64(len(ids)), 1.1, "%.2f")
	return nil
}

// top returns the n names with the greatest numbers.
func top(calls map[string]int64, n int) []string {
	names := slices.SortedFunc(maps.Keys(calls), func(x, y string) int {
		return cmp.Or(cmp.Compare(calls[y], calls[x]), cmp.Compare(x, y))
	})
	return names[:min(n, len(names))]
}
