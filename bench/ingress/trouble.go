package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

// trouble is how Slack's API answers for a while.
type trouble struct {
	wait  time.Duration // before each answer
	fails bool
	kills bool          // the front door dies after the burst, and another one starts
	lasts time.Duration // after the burst
}

func (t trouble) String() string {
	if t.fails {
		return fmt.Sprintf("fails for %v", t.lasts)
	}
	if t.kills {
		return "hangs until the front door is killed"
	}
	return fmt.Sprintf("answers after %v", t.wait)
}

// late is the longest that an event waits after the trouble: asynq's pauses grow to 5 minutes, and it gives the events
// of a front door that died to another one after a minute and a half.
const late = 6 * time.Minute

// trouble sends bursts of events while Slack's API does not answer in time. Each event must be answered at once and
// become one task.
func (b *bench) trouble(ctx context.Context) error {
	defer b.slack.Trouble(0, false)
	var refused, lost int64
	var answer time.Duration
	for _, t := range b.Troubles {
		burst, waiting, err := b.during(ctx, t)
		if err != nil {
			return err
		}
		p99 := burst.Percentile(.99)
		fmt.Fprintf(b.progress, "while Slack's API %v: %d of %d events taken, p99 %v, %d became tasks\n", t, burst.Taken,
			b.Burst, p99, waiting)
		refused, lost, answer = refused+int64(b.Burst)-burst.Taken, lost+int64(b.Burst)-waiting, max(answer, p99)
	}
	b.report.Most("events refused while Slack's API is slow or fails", float64(refused), 0, "%.0f")
	name := "lost meanwhile"
	if slices.ContainsFunc(b.Troubles, func(t trouble) bool { return t.kills }) {
		name = "lost, also by a front door that was killed"
	}
	b.report.Most(name, float64(lost), 0, "%.0f")
	b.report.Most("p99 of the answer meanwhile", table.Milliseconds(answer), 100, "%.1f ms")
	return nil
}

// during sends a burst in a trouble, and returns how many of its events have become tasks in the end.
func (b *bench) during(ctx context.Context, t trouble) (burst door.Load, tasks int64, err error) {
	list, err := b.contenders()
	if err != nil {
		return burst, 0, err
	}
	if err := b.redis.FlushAll(ctx).Err(); err != nil {
		return burst, 0, fmt.Errorf("empty Redis: %w", err)
	}
	b.slack.Trouble(t.wait, t.fails)
	s, err := b.serve(ctx, list[1])
	if err != nil {
		return burst, 0, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if burst, err = door.Fire(ctx, s.Addr, b.events(s, b.Burst), b.Within/time.Duration(b.Burst)); err != nil {
		return burst, 0, err
	}
	if t.kills {
		s.Kill()
		next, err := b.serve(ctx, list[1])
		if err != nil {
			return burst, 0, err
		}
		s = next
	}
	door.Until(ctx, time.Now().Add(t.lasts))
	b.slack.Trouble(0, false)
	tasks, err = s.within(ctx, b.redis, b.Burst, late)
	return burst, tasks, err
}
