package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

// pages measures the cost of an open page and the delay of its task's events.
func (b *bench) pages(ctx context.Context) (err error) {
	s, err := b.set(ctx, b.Runs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	if err := s.worker.fill(20); err != nil {
		return err
	}
	// Memory that stays after the first pages, such as connections to Redis, is not counted for a page.
	if err := errors.Join(s.watch(ctx), s.leave()); err != nil {
		return err
	}
	none, err := s.settled(ctx)
	if err != nil {
		return err
	}
	if err := s.watch(ctx); err != nil {
		return err
	}
	silent, err := s.settled(ctx)
	if err != nil {
		return err
	}
	if err := s.delays(ctx); err != nil {
		return err
	}
	after, err := s.settled(ctx)
	if err != nil {
		return err
	}
	each := float64(b.Pages)
	b.report.Most("heap and stacks of the front door for a page that is open", kilobytes(after.used-none.used)/each, 40,
		"%.1f KB")
	b.report.Note("of these, stacks", kilobytes(after.stacks-none.stacks)/each, "%.1f KB")
	b.report.Note("the same, as long as its task does nothing", kilobytes(silent.used-none.used)/each, "%.1f KB")
	b.report.Note("the same in RSS", kilobytes(silent.rss-none.rss)/each, "%.1f KB")
	b.report.Note("goroutines for a page that is open", (after.goroutines-none.goroutines)/each, "%.2f")
	return nil
}

// delays measures the delay from an event to the pages, and its cost.
func (s *stage) delays(ctx context.Context) error {
	cpu, err := s.front.CPU()
	if err != nil {
		return err
	}
	reads, err := s.reads(ctx)
	if err != nil {
		return err
	}
	all, wrote, err := s.write(ctx, apart, func() error { return pause(ctx, s.Time) })
	if err != nil {
		return err
	}
	cpuAfter, err := s.front.CPU()
	if err != nil {
		return err
	}
	readsAfter, err := s.reads(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.progress, "%d events, %.0f a second, in %d pages: p50 %v, p99 %v\n", wrote,
		float64(wrote)/s.Time.Seconds(), s.Pages, all.Percentile(.5), all.Percentile(.99))
	r := &s.report
	r.Most("from an event to the browser, p50", table.Milliseconds(all.Percentile(.5)), 100, "%.1f ms")
	r.Most("the same, p99", table.Milliseconds(all.Percentile(.99)), 500, "%.1f ms")
	r.Note("events written meanwhile, a second", float64(wrote)/s.Time.Seconds(), "%.0f")
	r.Most("readings of Redis for an event in a page", (readsAfter-reads)/float64(len(all.Delays)), 1.1, "%.2f")
	r.Note("CPU of the front door for an event in a page",
		float64(cpuAfter-cpu)/float64(time.Microsecond)/float64(len(all.Delays)), "%.0f µs")
	all, _, err = s.write(ctx, joint, func() error { return pause(ctx, s.Time) })
	if err != nil {
		return err
	}
	r.Note("from an event to the browser where the worker gathers for 100 ms, p50",
		table.Milliseconds(all.Percentile(.5)), "%.1f ms")
	r.Note("the same, p99", table.Milliseconds(all.Percentile(.99)), "%.1f ms")
	return nil
}

// reads returns the number of XRANGE calls so far.
func (b *bench) reads(ctx context.Context) (float64, error) {
	info, err := b.redis.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("count readings of Redis: %w", err)
	}
	_, rest, found := strings.Cut(info, "cmdstat_xrange:calls=")
	if !found {
		return 0, nil
	}
	number, _, _ := strings.Cut(rest, ",")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("count readings of Redis: %w", err)
	}
	return n, nil
}

func pause(ctx context.Context, d time.Duration) error {
	if !door.Until(ctx, time.Now().Add(d)) {
		return context.Cause(ctx)
	}
	return nil
}

func kilobytes(bytes float64) float64 { return bytes / 1024 }

func megabytes(bytes float64) float64 { return bytes / (1 << 20) }
