package worker

import (
	"context"
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
)

// hangingSource blocks while it looks for the report of one thread's tasks, until its context ends.
type hangingSource struct {
	*fakeSource
	thread string
	hangs  chan string
}

func (s *hangingSource) Open(ctx context.Context, t tasks.Task) (tasks.Report, error) {
	if t.Thread == s.thread {
		s.hangs <- t.ID
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.fakeSource.Open(ctx, t)
}

// A final message that hangs delays no other, not even a later one.
func TestHangingMessageHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	s := &hangingSource{f.source, "fake/hangs", make(chan string, 10)}
	f.source.brief = func(tasks.Task) (tasks.Brief, error) {
		return tasks.Brief{}, tasks.Later(time.Hour, "the source is busy")
	}
	hangs, other := f.submit(f.task("hangs", "x")), f.submit(f.task("other", "x"))
	cancelled := func(id string) {
		if _, err := f.desk.Cancel(t.Context(), id, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	cancelled(hangs)
	f.worker(func(c *Config) { c.Sources = []tasks.Source{s} })
	f.next(s.hangs)
	cancelled(other)
	f.ending(other)
}

// A task that is given up and whose message hangs does not keep others from being taken over.
func TestHangingMessageHoldsUpNoRecovery(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	s := &hangingSource{f.source, "fake/hangs", make(chan string, 10)}
	hangs, other := f.task("hangs", "x"), f.task("other", "x")
	for _, task := range []tasks.Task{hangs, other} {
		f.submit(task)
		if _, err := f.store.Claim(t.Context(), task.ID, 0, "dead"); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.redis().HSet(t.Context(), "errand:task:"+hangs.ID, "crashes", record.MaxCrashes-1).Err(); err != nil {
		t.Fatal(err)
	}
	f.worker(func(c *Config) { c.Sources = []tasks.Source{s} })
	f.next(s.hangs)
	f.ending(other.ID)
}
