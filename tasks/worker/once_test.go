package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
)

// takesOne makes a worker that takes one task.
func takesOne(c *Config) { c.Once = true }

// A worker that takes one task runs no second one, of whatever class, although more wait. Its final message is posted
// when it returns, and the next worker takes the next task.
func TestOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var ids []string
	for _, class := range []string{tasks.Background, tasks.Interactive, tasks.Review} {
		one := f.task("thread of "+class, "go")
		one.Class = class
		ids = append(ids, f.submit(one))
	}
	for n := range ids {
		if err := f.idle(takesOne).Run(await.Context(t)); err != nil {
			t.Fatal(err)
		}
		f.source.mu.Lock()
		posted := len(f.source.closed)
		f.source.mu.Unlock()
		if ran := len(f.agent.specs()); ran != n+1 || posted != n+1 {
			t.Fatalf("after worker %d there were %d runs and %d messages", n+1, ran, posted)
		}
	}
	for _, id := range ids {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("%s: %+v", id, e)
		}
	}
}

// What Run returns says why a worker that takes one task has ended.
func TestOnceSaysWhy(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	briefly := func(c *Config) { c.Wait = time.Millisecond }
	if err := f.idle(takesOne, briefly).Run(await.Context(t)); err != nil {
		t.Errorf("without a task: %v", err)
	}
	f.agent.health = agent.NewError(agent.ClassCLIMissing, "there is no CLI")
	if err := f.idle(takesOne, briefly).Run(await.Context(t)); !errors.Is(err, ErrUnable) {
		t.Errorf("without a CLI: %v", err)
	}
	f.agent.health = nil
	// With a broken machine.
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		return agent.Result{}, errors.New("no fork with s3cret-value")
	}
	f.policy.Redactor = agent.NewRedactor("s3cret-value")
	f.submit(f.task("a", "go"))
	err := f.idle(takesOne).Run(await.Context(t))
	if !errors.Is(err, ErrGaveBack) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("with a broken machine: %v", err)
	}
	// Without Redis, also if it was stopped meanwhile.
	stopped, stop := context.WithCancel(await.Context(t))
	stop()
	for _, ctx := range []context.Context{await.Context(t), stopped, stopped, stopped} {
		w := f.idle(takesOne)
		w.claimed()
		w.processed(errors.New("redis is gone"))
		if err := w.Run(ctx); !errors.Is(err, ErrGaveBack) {
			t.Errorf("without Redis: %v", err)
		}
	}
}

// A delivery that is processed when the waiting time ends delays the end of a worker that takes one task, and no more
// if its task is not claimed.
func TestOnceEndsAfterTheLastDelivery(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(takesOne, func(c *Config) { c.Wait = time.Nanosecond })
	if !w.mayProcess() || w.mayProcess() {
		t.Fatal("a worker that takes one task processes one delivery at a time")
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(await.Context(t)) }()
	f.workers(func(all []store.Worker) bool { return len(all) == 1 && capacity.Able(all[0]) })
	w.processed(errors.New("the thread is busy"))
	if err := <-ended; err != nil || t.Context().Err() != nil {
		t.Error(err)
	}
}

// A worker that takes one task goes on to the next delivery after one that no errand has made.
func TestOnceSkipsAForeignDelivery(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	where := store.QueueOf("", tasks.Interactive)
	_, err := asynq.NewClientFromRedisClient(f.rdb).Enqueue(asynq.NewTask("errand", []byte("x")),
		asynq.TaskID("foreign"), asynq.Queue(where))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	w := f.idle(takesOne)
	go func() { ended <- w.Run(await.Context(t)) }()
	await.Until(t, "the foreign delivery is refused", func() bool {
		d, err := f.asynq.GetTaskInfo(where, "foreign")
		return err == nil && d.State == asynq.TaskStateArchived
	})
	f.submit(f.task("a", "go"))
	if err := <-ended; err != nil || len(f.agent.specs()) != 1 {
		t.Errorf("%d runs, %v", len(f.agent.specs()), err)
	}
}

// stumbling is a meter that panics when a run begins.
type stumbling struct{ unmetered }

func (stumbling) Began(tasks.Task, time.Duration) { panic("a mistake in errand") }

// A worker that takes one task ends as after any failure of errand if the task makes it panic.
func TestOnceEndsAfterAPanic(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.submit(f.task("a", "go"))
	ctx := await.Context(t)
	err := f.idle(takesOne, func(c *Config) { c.Meter = stumbling{} }).Run(ctx)
	if !errors.Is(err, ErrGaveBack) || ctx.Err() != nil {
		t.Error(err)
	}
}

// A worker that takes one task ends if it can run none for long, also if it would wait for ever for a task.
func TestOnceEndsIfUnable(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.health = agent.NewError(agent.ClassCLIMissing, "there is no CLI")
	ctx := await.Context(t)
	err := f.idle(takesOne, func(c *Config) { c.Timing.Unable = time.Millisecond }).Run(ctx)
	if !errors.Is(err, ErrUnable) || ctx.Err() != nil {
		t.Error(err)
	}
}

// A worker that can run tasks, or runs its one, is not unable.
func TestOnceAbleHasNoLimit(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(takesOne)
	before := w.unable(nil)
	if before == nil || w.unable(before) != before {
		t.Error("the time does not count from when the worker became unable")
	}
	w.claimed()
	if w.unable(before) != nil {
		t.Error("the one task is stopped")
	}
	w = f.idle(takesOne)
	if w.health.Check(t.Context()); w.unable(before) != nil {
		t.Error("a worker that can run tasks is stopped")
	}
}

// A worker that takes one task answers no question about repositories, whose clones the task could read.
func TestOnceAnswersNoOffer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	ctx, cancel := context.WithCancel(await.Context(t))
	told := make(chan struct{}, 1)
	go func() {
		_, _ = f.desk.Offer(ctx, capacity.Where{}) // it ends with ctx, unanswered
		told <- struct{}{}
	}()
	asked := func() bool { return f.rdb.LLen(t.Context(), "errand:inquiries").Val() == 1 }
	await.Until(t, "the inquiry is there", func() bool { return asked() || len(told) > 0 })
	f.submit(f.task("a", "go"))
	w := f.idle(takesOne)
	w.health.Check(ctx)
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
	if n := len(f.agent.offers); n != 0 || len(f.agent.specs()) != 1 || !asked() {
		t.Errorf("%d offers beside %d runs", n, len(f.agent.specs()))
	}
	cancel()
	<-told
}
