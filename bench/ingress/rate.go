package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

// reading is the result of a contender, or the median of several.
type reading struct {
	rate  float64       // events a second at full load
	cpu   time.Duration // of the server, for each, until it is in the queue
	redis time.Duration // of Redis, likewise
	half  time.Duration // p99 of the answer at half that rate
	p50   time.Duration // the median of the same
	tasks float64       // events a second of the full load until all of them are in the queue

	// The same of the full load while what interprets the events is paused, if there is such a thing.
	answers float64
	answer  time.Duration
}

// rate measures all contenders in turns.
func (b *bench) rate(ctx context.Context) error {
	list, err := b.contenders()
	if err != nil {
		return err
	}
	readings := make([][]reading, len(list))
	for range b.Readings {
		for i, c := range list {
			r, err := b.read(ctx, c)
			if err != nil {
				return err
			}
			fmt.Fprintf(b.progress, "%-14s %6.0f/s %4.0f µs, at half of it p50 %v, p99 %v\n", c.Name, r.rate,
				micros(r.cpu), r.p50, r.half)
			readings[i] = append(readings[i], r)
		}
	}
	medians := map[string]reading{} // by contender
	for i, c := range list {
		medians[c.Name] = middle(readings[i])
	}
	b.sideBySide(list, medians)
	b.compare(medians[ownName], medians[bareName], medians[boltName])
	return nil
}

// sideBySide adds the table of the contenders.
func (b *bench) sideBySide(list []contender, medians map[string]reading) {
	b.report.Compare("contender", "events/s", "of bare", "of Bolt", "CPU for one", "of Bolt", "of Redis", "p50 at half",
		"p99 at half")
	limit, bolt := medians[bareName], medians[boltName]
	for _, c := range list {
		r := medians[c.Name]
		b.report.Compare(c.Name, fmt.Sprintf("%.0f", r.rate), table.Ratio(r.rate, limit.rate),
			table.Ratio(r.rate, bolt.rate), fmt.Sprintf("%.0f µs", micros(r.cpu)),
			table.Ratio(float64(r.cpu), float64(bolt.cpu)), fmt.Sprintf("%.0f µs", micros(r.redis)),
			fmt.Sprintf("%.1f ms", table.Milliseconds(r.p50)), fmt.Sprintf("%.1f ms", table.Milliseconds(r.half)))
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// compare compares errand with the others. Bolt has zeros if it was not measured.
func (b *bench) compare(own, limit, bolt reading) {
	r := &b.report
	r.Least("answers a second, as a multiple of a bare handler's", own.answers/limit.answers, 0.80, "%.2f")
	if bolt.rate > 0 {
		r.Least("the same of Bolt's", own.answers/bolt.answers, 2.5, "%.2f")
		r.Most("CPU for an answer, as a multiple of Bolt's", float64(own.answer)/float64(bolt.answer), 0.35, "%.2f")
	}
	r.Least("the rate while events are interpreted, as a multiple of a bare handler's", own.rate/limit.rate, 0.60, "%.2f")
	r.Most("p99 of the answer at half the rate", table.Milliseconds(own.half), 15, "%.1f ms")
	r.Least("events a second until they are tasks, as a multiple of a bare handler's", own.tasks/limit.tasks, 0.45, "%.2f")
}

// middle returns the median of each value separately.
func middle(list []reading) reading {
	var r reading
	r.rate = table.MedianOf(list, func(r reading) float64 { return r.rate })
	r.cpu = table.MedianOf(list, func(r reading) time.Duration { return r.cpu })
	r.redis = table.MedianOf(list, func(r reading) time.Duration { return r.redis })
	r.half = table.MedianOf(list, func(r reading) time.Duration { return r.half })
	r.p50 = table.MedianOf(list, func(r reading) time.Duration { return r.p50 })
	r.tasks = table.MedianOf(list, func(r reading) float64 { return r.tasks })
	r.answers = table.MedianOf(list, func(r reading) float64 { return r.answers })
	r.answer = table.MedianOf(list, func(r reading) time.Duration { return r.answer })
	return r
}

// read measures one contender on an empty Redis. All events with a 200 response must be in its queue.
func (b *bench) read(ctx context.Context, c contender) (_ reading, err error) {
	if err := b.redis.FlushAll(ctx).Err(); err != nil {
		return reading{}, fmt.Errorf("empty Redis: %w", err)
	}
	s, err := b.serve(ctx, c)
	if err != nil {
		return reading{}, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if _, err := door.Fire(ctx, s.Addr, b.events(s, b.Requests/20), 0); err != nil { // to warm up
		return reading{}, err
	}
	answers, answer, err := b.answers(ctx, s)
	if err != nil {
		return reading{}, err
	}
	first := b.Requests/20 + b.Requests
	if _, err := s.waiting(ctx, b.redis, first); err != nil {
		return reading{}, err
	}
	before, err := s.CPU()
	if err != nil {
		return reading{}, err
	}
	stored, err := b.redisCPU(ctx)
	if err != nil {
		return reading{}, err
	}
	begun := time.Now()
	full, err := door.Fire(ctx, s.Addr, b.events(s, b.Requests), 0)
	if err != nil {
		return reading{}, err
	}
	if _, err := s.waiting(ctx, b.redis, first+b.Requests); err != nil {
		return reading{}, err
	}
	queued := time.Since(begun)
	after, err := s.CPU()
	if err != nil {
		return reading{}, err
	}
	storedAfter, err := b.redisCPU(ctx)
	if err != nil {
		return reading{}, err
	}
	interval := time.Duration(2 * float64(time.Second) / full.Rate())
	half, err := door.Fire(ctx, s.Addr, b.events(s, b.Requests/2), interval)
	if err != nil {
		return reading{}, err
	}
	taken := b.Requests + b.Requests/2
	want := first + taken
	waiting, err := s.waiting(ctx, b.redis, want)
	if err != nil {
		return reading{}, err
	}
	if waiting != int64(want) || full.Taken+half.Taken != int64(taken) {
		return reading{}, fmt.Errorf("%s: %d of %d events are in the queue, %d were answered with 200", c.Name, waiting,
			want, full.Taken+half.Taken)
	}
	each := time.Duration(b.Requests)
	return reading{
		rate: full.Rate(), cpu: (after - before) / each, redis: (storedAfter - stored) / each,
		half: half.Percentile(.99), p50: half.Percentile(.5), tasks: float64(b.Requests) / queued.Seconds(),
		answers: answers, answer: answer,
	}, nil
}

// answers returns the rate of answers at full load and the server's CPU time for one, while it does nothing else.
func (b *bench) answers(ctx context.Context, s *server) (rate float64, each time.Duration, err error) {
	if s.inbox != "" {
		inspector := asynq.NewInspectorFromRedisClient(b.redis)
		if err := inspector.PauseQueue(s.inbox); err != nil {
			return 0, 0, fmt.Errorf("pause %s: %w", s.inbox, err)
		}
		defer func() { err = errors.Join(err, inspector.UnpauseQueue(s.inbox)) }()
	}
	before, err := s.CPU()
	if err != nil {
		return 0, 0, err
	}
	full, err := door.Fire(ctx, s.Addr, b.events(s, b.Requests), 0)
	if err != nil {
		return 0, 0, err
	}
	if full.Taken != int64(b.Requests) {
		return 0, 0, fmt.Errorf("%s: %d of %d events were answered with 200", s.Name, full.Taken, b.Requests)
	}
	after, err := s.CPU()
	return full.Rate(), (after - before) / time.Duration(b.Requests), err
}

// redisCPU returns the CPU time of Redis so far.
func (b *bench) redisCPU(ctx context.Context) (sum time.Duration, _ error) {
	info, err := b.redis.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, fmt.Errorf("read CPU time of Redis: %w", err)
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_sys" && name != "used_cpu_user" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of Redis: %w", err)
		}
		sum += time.Duration(seconds * float64(time.Second))
	}
	return sum, nil
}
