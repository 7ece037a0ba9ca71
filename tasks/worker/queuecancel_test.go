package worker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/goroutines"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// A cancel in asynq's console cancels the task: running or waiting, it ends once, with a message, and does not run
// again.
func TestAsynqCancelIsOurs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 10)
	f.agent.do = untilStopped(started)
	f.worker()
	f.worker()
	f.subscribed(2 * 2) // asynq's server, and ours

	retried := f.submit(f.task("a", "cancelled before"))
	<-started
	if _, err := f.desk.Cancel(t.Context(), retried, "ann"); err != nil {
		t.Fatal(err)
	}
	f.ending(retried)
	f.source.mu.Lock()
	delete(f.source.closed, retried)
	f.source.mu.Unlock()
	if _, err := f.desk.Retry(t.Context(), retried); err != nil { // its delivery's ID differs from the task's
		t.Fatal(err)
	}
	<-started
	behind := f.submit(f.task("a", "waits"))
	for _, id := range []string{behind, tasks.DeliveryID(retried, 1)} {
		if err := f.asynq.CancelProcessing(id); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{retried, behind} {
		if e := f.ending(id); e.Kind != tasks.Cancelled || e.By != byQueue {
			t.Errorf("ending of %s = %+v", id, e)
		}
	}
	// asynq redelivers what it took from its handler, and the handler finds nothing to do.
	f.settled(retried, 1)
	if n := len(f.agent.specs()); n != 2 {
		t.Errorf("%d runs, want the one before and one: %v", n, ids(f.agent.specs()))
	}
}

// A drain waits for a run whose delivery asynq has given away.
func TestDrainWaitsForRunWithoutDelivery(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	steps, drained, end := make(chan string, 10), make(chan struct{}), make(chan struct{})
	f.agent.do = func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		r, err := untilStopped(steps)(ctx, s, h)
		steps <- "stopped"
		<-end
		return r, err
	}
	w := f.idle()
	ctx, drain := context.WithCancel(t.Context())
	defer drain()
	go func() {
		defer close(drained)
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	f.subscribed(2)
	id := f.submit(f.task("a", "x"))
	<-steps
	if err := f.asynq.CancelProcessing(id); err != nil {
		t.Fatal(err)
	}
	<-steps
	await.Until(t, "asynq has taken the delivery from its handler", func() bool {
		info, err := f.asynq.GetTaskInfo(tasks.Interactive, id)
		if err != nil {
			t.Fatal(err)
		}
		return info.State != asynq.TaskStateActive
	})
	drain()
	over := func() bool {
		select {
		case <-drained:
			return true
		default:
			return false
		}
	}
	const test = "worker.TestDrainWaitsForRunWithoutDelivery"
	if !goroutines.Await(over, 1, test, "worker.(*Worker).shutdown(", "[select") {
		t.Error("the worker stopped before its run")
	}
	close(end)
	<-drained
	if s, err := f.desk.Status(t.Context(), id); err != nil || s.State != string(store.Ended) {
		t.Errorf("state %s, %v", s.State, err)
	}
}

// subscribed waits until that many clients listen for asynq's cancels.
func (f *fleet) subscribed(want int) {
	f.Helper()
	client := f.redis()
	await.Until(f, fmt.Sprintf("%d clients listen for cancels", want), func() bool {
		n, err := client.PubSubNumSub(f.Context(), "asynq:cancel").Result()
		if err != nil {
			f.Fatal(err)
		}
		return n["asynq:cancel"] == int64(want)
	})
}

// settled waits until a delivery is finished, and no longer.
func (f *fleet) settled(id string, delivery int) {
	f.Helper()
	await.Until(f, "the delivery is finished", func() bool {
		rec := store.Record{ID: id, Class: tasks.Interactive, Delivery: delivery}
		_, alive, err := f.queue.Delivered(f.Context(), []store.LiveRecord{{Record: rec}})
		if err != nil {
			f.Fatal(err)
		}
		if alive[0] {
			f.queue.Wake(f.Context(), id, tasks.Interactive, delivery)
		}
		return !alive[0]
	})
}

// A worker that no longer receives cancels, because its Redis client was closed, does not crash.
func TestClosedClientEndsTheListening(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	client := f.redis()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tasks.NewQueue(f.store, client, time.Hour).Cancels(ctx, func(string) { t.Error("received a cancel") })
	}()
	f.subscribed(1)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if ctx.Err() != nil {
		t.Error("it went on listening")
	}
}
