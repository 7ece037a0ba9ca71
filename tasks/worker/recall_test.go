package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
)

// recalling is a source that can look up posted final messages.
type recalling struct {
	*fakeSource
	final func() (*tasks.Ending, error)
}

func (s recalling) Capabilities() tasks.Capabilities {
	can := s.fakeSource.Capabilities()
	can.Final = func(context.Context, tasks.Task, time.Time) (*tasks.Ending, error) { return s.final() }
	return can
}

// recalls gives a worker such a source.
func (f *fleet) recalls(final func() (*tasks.Ending, error)) func(*Config) {
	return func(c *Config) { c.Sources = []tasks.Source{recalling{f.source, final}} }
}

// If a source says when it can be queried, the worker waits until then: a task that was already answered is not done
// again.
func TestRecallWaitsForALimit(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	task := f.task("a", "x")
	f.died(task, 1)
	f.lapse(task.Thread)
	var asked atomic.Int32
	f.worker(f.recalls(func() (*tasks.Ending, error) {
		if asked.Add(1) == 1 {
			return nil, tasks.Later(0, "too many requests")
		}
		return &tasks.Ending{Kind: tasks.Answered, At: time.Now()}, nil
	}))
	if e := f.ending(task.ID); !e.Found {
		t.Errorf("ending = %+v", e)
	}
	if n := len(f.agent.specs()); n != 0 {
		t.Errorf("%d runs", n)
	}
}

// A task that is already answered does not wait and delays no other.
func TestRecallComesBeforeAllWaiting(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	task := f.task("b", "x")
	f.died(task, record.MaxCrashes-1)
	f.worker(f.recalls(func() (*tasks.Ending, error) {
		return &tasks.Ending{Kind: tasks.Answered, At: time.Now()}, nil
	}),
		func(c *Config) { c.Timing.Alone = 600 * time.Millisecond })
	busy := f.submit(f.task("a", "x"))
	f.next(started)
	f.lapse(task.Thread)
	if e := f.ending(task.ID); !e.Found {
		t.Errorf("ending = %+v", e)
	}
	close(finish)
	f.ending(busy)
}
