package worker

import (
	"context"
	"fmt"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/goroutines"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/queue"
)

// A cancel by asynq's tools takes the delivery from its handler, and leaves the run alone.
func TestCancelByAsynqLeavesTheRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, end := make(chan string, 10), make(chan struct{})
	f.agent.do = func(_ context.Context, _ agent.Spec, _ agent.Host) (agent.Result, error) {
		started <- "started"
		<-end
		return answer("Done"), nil
	}
	f.worker()
	f.worker()
	f.subscribed(2)
	id := f.submit(f.task("a", "x"))
	<-started
	f.cancelByAsynq(id)
	close(end)
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("ending %+v", e)
	}
	// asynq redelivers what it took from its handler, and the handler finds nothing to do.
	f.settled(id, 0)
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs: %v", n, ids(f.agent.specs()))
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
	f.subscribed(1)
	id := f.submit(f.task("a", "x"))
	<-steps
	f.cancelByAsynq(id)
	drain()
	<-steps
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
	if s, err := f.desk.Status(t.Context(), id); err != nil || s.State != string(store.Waiting) {
		t.Errorf("state %s, %v", s.State, err)
	}
}

// cancelByAsynq cancels a delivery as asynq's tools do, and waits until asynq has taken it from its handler.
func (f *fleet) cancelByAsynq(id string) {
	f.Helper()
	if err := f.asynq.CancelProcessing(id); err != nil {
		f.Fatal(err)
	}
	await.Until(f, "asynq has taken the delivery from its handler", func() bool {
		info, err := f.asynq.GetTaskInfo(tasks.Interactive, id)
		if err != nil {
			f.Fatal(err)
		}
		return info.State != asynq.TaskStateActive
	})
}

// subscribed waits until the servers of that many workers listen for asynq's cancels.
func (f *fleet) subscribed(workers int) {
	f.Helper()
	client, want := f.redis(), workers*len(tasks.Classes)
	await.Until(f, fmt.Sprintf("%d servers listen for cancels", want), func() bool {
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
		info, err := f.asynq.GetTaskInfo(tasks.Interactive, queue.DeliveryID(id, delivery))
		if err != nil {
			f.Fatal(err)
		}
		_ = f.asynq.RunTask(tasks.Interactive, queue.DeliveryID(id, delivery)) // it fails if it is not scheduled
		return info.State == asynq.TaskStateCompleted
	})
}
