package worker

import (
	"context"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// outage informs the threads of waiting tasks, once, that no worker of their pool can run them or that their class is
// paused. Like recovery, only a leader does it. Only one goroutine uses it.
type outage struct {
	*Config

	leader *store.Leader
	health *health
	waits  *waitNotices

	after string            // the walk through live tasks continues after this one, or begins if ""
	heads map[string]string // by thread: the first of its tasks in this walk
	done  map[string]bool   // tasks that are informed or cannot be; the store knows those of other workers
}

// maxInformed is how many threads one pass informs, so that a long queue does not use up a source's rate limit.
const maxInformed = 20

// emptyPool times Timing.Observe is how long a task waits for the first worker of its pool before its thread is
// informed, because an autoscaler may be starting one.
const emptyPool = 10

// inform informs some threads, the longest waiting first, while no worker of their pool can run tasks or their class is
// paused.
func (o *outage) inform(ctx context.Context) {
	paused, err := o.Store.Halts.Paused(ctx)
	if err != nil || !o.mayBe() && len(paused) == 0 {
		return
	}
	if term, err := o.leader.Lead(ctx); err != nil || term == "" {
		return // another worker does it, or Redis is unreachable, which the reconciler logs
	}
	workers, able := o.workers(ctx), o.health.state().OK
	for informed, looked := 0, 0; looked < lookMost && ctx.Err() == nil; looked += lookStep {
		live, next, err := o.Store.LiveAfter(ctx, o.after, lookStep)
		if err != nil {
			return
		}
		if o.after == "" {
			o.begin()
		}
		o.after = next
		for _, rec := range live { // the oldest first
			if !o.due(rec.Record) {
				continue
			}
			reason, key, until := o.why(workers, rec.Record), "unable", "that is fixed. "
			if h, is := paused[rec.Class]; is {
				reason, key, until = tasks.WhyPaused(rec.Class, h, time.Now()), "paused", "they are resumed. "
			} else if reason == "" || able && rec.Pool == o.Pool {
				continue
			} else if rec.Pool == o.Pool && o.health.state().OK {
				o.after = ""
				return
			}
			text := strings.ToUpper(reason[:1]) + reason[1:] + ". This waits and starts by itself when " +
				until + howToCancel(rec.ID)
			said, over := o.waits.sayOnce(ctx, rec.ID, text, func(ctx context.Context) (bool, error) {
				return o.Store.Questions.FirstWhileWaiting(ctx, rec.ID, key)
			})
			if o.done[rec.ID] = over; said {
				informed++
			}
			if informed == maxInformed {
				o.after = rec.ID
				return
			}
		}
		if next == "" {
			return // the next pass starts from the beginning
		}
	}
}

// mayBe reports whether a pool may have no worker that can run tasks: this worker cannot, or there are other pools.
func (o *outage) mayBe() bool {
	last := o.health.state()
	return !last.at.IsZero() && (!last.OK || len(o.Policy.Pools) > 1)
}

// workers returns the live workers; none if they are unknown or mayBe is false.
func (o *outage) workers(ctx context.Context) []store.Worker {
	if !o.mayBe() {
		return nil
	}
	workers, _ := o.Store.Workers.List(ctx)
	return workers
}

// why says why none of the workers can run a task; empty if one can or if that is unknown.
func (o *outage) why(workers []store.Worker, rec store.Record) string {
	if len(workers) == 0 { // this worker's heartbeat is not visible yet
		return ""
	}
	if len(tasks.InPool(workers, rec.Pool)) == 0 && time.Since(rec.Due()) < emptyPool*o.Timing.Observe {
		return ""
	}
	return tasks.WhyNoWorkerIn(workers, rec.Pool)
}

// begin starts a new walk. It forgets tasks that are no longer the first of their thread.
func (o *outage) begin() {
	still := map[string]bool{}
	for _, id := range o.heads {
		if o.done[id] {
			still[id] = true
		}
	}
	o.heads, o.done = map[string]string{}, still
}

// due reports whether a task is the first of its thread, has waited for as long as Timing.Observe, and is not done.
func (o *outage) due(rec store.Record) bool {
	if rec.Unreadable != "" {
		return false
	}
	if first, ok := o.heads[rec.Thread]; ok && first != rec.ID {
		return false
	}
	o.heads[rec.Thread] = rec.ID
	return rec.State == store.Waiting && !o.done[rec.ID] && time.Since(rec.Due()) >= o.Timing.Observe
}
