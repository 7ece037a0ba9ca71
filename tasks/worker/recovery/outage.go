package recovery

import (
	"context"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/capacity"
)

// maxInformed is how many threads one pass informs, so that a long queue does not use up a source's rate limit.
const maxInformed = 8

// emptyPool times Observe is how long a task waits for the first worker of its pool before its thread is
// informed, because an autoscaler may be starting one.
const emptyPool = 10

// fleet is what one pass sees of the fleet.
type fleet struct {
	paused   map[string]store.Halt // by class
	workers  []store.Worker        // live ones; none if they are unknown, or if some worker can run any task
	informed int                   // threads in this pass
}

// lookAtFleet reads what may keep tasks from running. What it cannot read counts as no obstacle.
func (r *Recovery) lookAtFleet(ctx context.Context) (seen fleet) {
	seen.paused, _ = r.Store.Paused.All(ctx)
	last := r.Health.State()
	if !last.At.IsZero() && (!last.OK || len(r.Policy.Pools) > 1) {
		seen.workers, _ = r.Store.Workers.List(ctx)
	}
	return seen
}

// obstacle is why no worker can run a task.
type obstacle struct {
	reason string // a sentence without its full stop; "" if there is none, or if that is unknown
	pause  bool   // it is a pause of the task's class
}

// why says why no worker can run a task.
func (r *Recovery) why(seen *fleet, rec store.Record) obstacle {
	if halt, is := seen.paused[rec.Class]; is {
		return obstacle{reason: capacity.WhyPaused(rec.Class, halt), pause: true}
	}
	if r.Health.State().OK && rec.Pool == r.Pool {
		return obstacle{}
	}
	if len(seen.workers) == 0 { // this worker's heartbeat is not visible yet
		return obstacle{}
	}
	if len(capacity.InPool(seen.workers, rec.Pool)) == 0 && time.Since(rec.Due()) < emptyPool*r.Observe {
		return obstacle{}
	}
	return obstacle{reason: capacity.WhyNoWorkerIn(seen.workers, rec.Pool)}
}

// inform says in the threads of tasks, once, that no worker of their pool can run them or that their class is paused.
// It looks at the first task of a thread when that has waited for as long as Observe.
func (r *Recovery) inform(seen *fleet, live []store.LiveRecord) {
	for _, rec := range live { // the oldest first
		if rec.State != store.Waiting || r.heads[rec.Thread] != rec.ID || time.Since(rec.Due()) < r.Observe {
			continue
		}
		why := r.why(seen, rec.Record)
		if why.reason == "" || seen.informed == maxInformed {
			continue
		}
		if _, is := r.informed.LoadOrStore(rec.ID, true); is {
			continue
		}
		seen.informed++
		if !r.Notices.Background(func() { r.tell(rec.ID, why) }) {
			r.informed.Delete(rec.ID)
		}
	}
}

// tell informs the thread of a task, once. After an error the next walk tries it again.
func (r *Recovery) tell(id string, why obstacle) {
	key, until := "unable", "that is fixed."
	if why.pause {
		key, until = "paused", "they are resumed."
	}
	text := strings.ToUpper(why.reason[:1]) + why.reason[1:] + ". This waits and starts by itself when " + until
	over := r.Notices.SayOnce(context.Background(), id, text, false, func(ctx context.Context) (bool, error) {
		return r.Store.Questions.FirstWhileWaiting(ctx, id, key)
	})
	if !over {
		r.informed.Delete(id)
	}
}

// forget forgets informed tasks that are no longer the first of their thread. The store knows them.
func (r *Recovery) forget() {
	first := map[string]bool{}
	for _, id := range r.heads {
		first[id] = true
	}
	r.informed.Range(func(id, _ any) bool {
		if !first[id.(string)] { //nolint:forcetypeassert // inform stores IDs
			r.informed.Delete(id)
		}
		return true
	})
}
