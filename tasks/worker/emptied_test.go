package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/testlog"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// lines is a log that tests can read.
type lines struct{ testlog.Log }

// await waits until the log contains that line.
func (l *lines) await(t *testing.T, what string) {
	t.Helper()
	await.Until(t, "the log says "+what, func() bool { return strings.Contains(l.String(), what) })
}

// logged makes a worker write to the log as well.
func logged(l *lines) func(*Config) {
	return func(c *Config) { c.Log = slog.New(slog.NewTextHandler(io.Writer(l), nil)) }
}

// Redis is emptied while a run is live. The run continues and is answered once, however soon it ends after that, and
// the log says what happened.
func TestRedisIsEmptiedDuringARun(t *testing.T) {
	t.Parallel()
	for name, soon := range map[string]bool{"ends at once": true, "goes on": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, said := newFleet(t), &lines{}
			started, proceed := make(chan string), make(chan struct{})
			f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
				started <- ""
				<-proceed
				return answer("here you are"), nil
			}
			f.worker(logged(said), func(c *Config) {
				if soon { // before anything is renewed
					c.Store = f.open(store.Config{Redis: f.redis()})
				}
			})
			id := f.submit(f.task("a", "x"))
			<-started
			said.await(t, "worker started")
			f.flush()
			if !soon {
				await.Until(t, "the task runs again", func() bool { return f.runningTask() == id })
			}
			close(proceed)
			if e := f.ending(id); e.Kind != tasks.Answered || e.Result.Text != "here you are" {
				t.Errorf("ending = %+v", e)
			}
			said.await(t, "redis lost its data")
			said.await(t, "task restored")
			if s, err := f.desk.Status(t.Context(), id); err != nil || s.State != "ended" {
				t.Errorf("%+v, %v", s, err)
			}
			next := f.task("a", "y")
			go func() { <-started }()
			f.ending(f.submit(next))
			f.stopAll()
			if n := f.source.closes[id]; n != 1 {
				t.Errorf("%d final messages", n)
			}
		})
	}
}

// flush empties Redis.
func (f *fleet) flush() {
	f.Helper()
	if err := f.rdb.FlushAll(f.Context()).Err(); err != nil {
		f.Fatal(err)
	}
}

// runningTask is the ID of a task that runs.
func (f *fleet) runningTask() string {
	f.Helper()
	live, err := f.store.Running(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	if len(live) == 0 {
		return ""
	}
	return live[0].ID
}

// An event that is delivered again right after Redis was emptied, before a worker has looked at the data, is answered
// from the message in its thread: its work is not done twice.
func TestRedisIsEmptiedAfterAnAnswer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	task := f.task("a", "x")
	f.worker(f.recalls(func() (*tasks.Ending, error) {
		return &tasks.Ending{Kind: tasks.Answered, At: time.Now()}, nil
	}),
		func(c *Config) { c.Timing.Beat, c.Timing.Reconcile = time.Hour, time.Hour })
	if e := f.ending(f.submit(task)); e.Found {
		t.Errorf("the first ending = %+v", e)
	}
	f.flush()
	f.source.mu.Lock()
	delete(f.source.closed, task.ID)
	f.source.mu.Unlock()
	if e := f.ending(f.submit(task)); !e.Found {
		t.Errorf("the second ending = %+v", e)
	}
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// If the thread has moved on in the meantime, the run stops and its thread gets a message.
func TestRedisIsEmptiedAndTheThreadGoesOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 1)
	f.agent.do = untilStopped(started)
	f.worker(func(c *Config) { c.Timing.Reconcile = time.Hour })
	id := f.submit(f.task("a", "x"))
	<-started
	var next *store.Claim
	for next == nil { // the owner may be faster
		f.flush()
		second := f.task("a", "y")
		_, _, err := f.store.Submit(t.Context(), store.Record{
			ID: second.ID, Thread: second.Thread, Class: second.Class, Task: format.JSON(second),
		})
		if err != nil {
			t.Fatal(err)
		}
		next, err = f.store.Claim(t.Context(), second.ID, 0, "other")
		if err != nil && !errors.Is(err, store.ErrBusy) {
			t.Fatal(err)
		}
	}
	if e := f.ending(id); e.Kind != tasks.Failed || !strings.Contains(e.Sentence(), "database lost this task") {
		t.Errorf("ending = %+v", e)
	}
	if err := next.End(t.Context(), format.JSON(tasks.Ending{Kind: tasks.Answered})); err != nil {
		t.Errorf("end of the new owner: %v", err)
	}
}
