package recovery

import (
	"context"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/tasks/worker/notices"
)

// Outage informs the threads of waiting tasks, once, that no worker of their pool can run them or that their class is
// paused. Only one goroutine uses it.
type Outage struct {
	Store   *store.Store
	Policy  rights.Policy
	Pool    string // of this worker
	Health  *machine.Health
	Notices *notices.Notifier
	Leader  *store.Leader
	// Observe is how long all workers must be unable before threads are informed.
	Observe time.Duration

	after    string            // the walk through live tasks continues after this one, or begins if ""
	heads    map[string]string // by thread: the first of its tasks in this walk
	informed map[string]bool   // tasks that are informed or cannot be; the store knows those of other workers
}

// maxInformed is how many threads one pass informs, so that a long queue does not use up a source's rate limit.
const maxInformed = 20

// emptyPool times Observe is how long a task waits for the first worker of its pool before its thread is
// informed, because an autoscaler may be starting one.
const emptyPool = 10

// Inform informs some threads, the longest waiting first, while no worker of their pool can run tasks or their class is
// paused.
func (o *Outage) Inform(ctx context.Context) {
	paused, err := o.Store.Halts.Paused(ctx)
	if err != nil || !o.mayBe() && len(paused) == 0 {
		return
	}
	if term, err := o.Leader.Lead(ctx); err != nil || term == "" {
		return // another worker does it, or Redis is unreachable, which the reconciler logs
	}
	seen := fleet{paused: paused, able: o.Health.State().OK}
	if o.mayBe() {
		seen.workers, _ = o.Store.Workers.List(ctx)
	}
	informed := 0
	for looked := 0; looked < lookMost && ctx.Err() == nil; looked += lookStep {
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
			why := o.why(seen, rec.Record)
			if why.reason == "" {
				continue
			}
			if !why.pause && rec.Pool == o.Pool && o.Health.State().OK {
				o.after = "" // it is repaired meanwhile
				return
			}
			if o.tell(ctx, rec.ID, why) {
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

// fleet is what one pass sees of the fleet.
type fleet struct {
	paused  map[string]store.Halt // by class
	workers []store.Worker        // live ones; none if they are unknown
	able    bool                  // this worker can run tasks
}

// obstacle is why no worker can run a task.
type obstacle struct {
	reason string // a sentence without its full stop; "" if there is none, or if that is unknown
	pause  bool   // it is a pause of the task's class
}

// why says why no worker can run a task.
func (o *Outage) why(seen fleet, rec store.Record) obstacle {
	if halt, is := seen.paused[rec.Class]; is {
		return obstacle{reason: capacity.WhyPaused(rec.Class, halt), pause: true}
	}
	if seen.able && rec.Pool == o.Pool {
		return obstacle{}
	}
	if len(seen.workers) == 0 { // this worker's heartbeat is not visible yet
		return obstacle{}
	}
	if len(capacity.InPool(seen.workers, rec.Pool)) == 0 && time.Since(rec.Due()) < emptyPool*o.Observe {
		return obstacle{}
	}
	return obstacle{reason: capacity.WhyNoWorkerIn(seen.workers, rec.Pool)}
}

// tell informs the thread of a task, once, and reports whether it did.
func (o *Outage) tell(ctx context.Context, id string, why obstacle) bool {
	key, until := "unable", "that is fixed."
	if why.pause {
		key, until = "paused", "they are resumed."
	}
	text := strings.ToUpper(why.reason[:1]) + why.reason[1:] + ". This waits and starts by itself when " + until
	said, over := o.Notices.SayOnce(ctx, id, text, false, func(ctx context.Context) (bool, error) {
		return o.Store.Questions.FirstWhileWaiting(ctx, id, key)
	})
	o.informed[id] = over
	return said
}

// mayBe reports whether a pool may have no worker that can run tasks: this worker cannot, or there are other pools.
func (o *Outage) mayBe() bool {
	last := o.Health.State()
	return !last.At.IsZero() && (!last.OK || len(o.Policy.Pools) > 1)
}

// begin starts a new walk. It forgets tasks that are no longer the first of their thread.
func (o *Outage) begin() {
	still := map[string]bool{}
	for _, id := range o.heads {
		if o.informed[id] {
			still[id] = true
		}
	}
	o.heads, o.informed = map[string]string{}, still
}

// due reports whether a task is the first of its thread, has waited for as long as Observe, and is not done.
func (o *Outage) due(rec store.Record) bool {
	if rec.Unreadable != "" {
		return false
	}
	if first, ok := o.heads[rec.Thread]; ok && first != rec.ID {
		return false
	}
	o.heads[rec.Thread] = rec.ID
	return rec.State == store.Waiting && !o.informed[rec.ID] && time.Since(rec.Due()) >= o.Observe
}
