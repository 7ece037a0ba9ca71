package recovery

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

// maxInformed is how many threads one pass informs, so that a long queue does not use up a source's rate limit.
const maxInformed = 8

// emptyPool times Observe is how long a task waits for the first worker of its pool before its thread is
// informed, because an autoscaler may be starting one.
const emptyPool = 10

// lookAgain times Observe is how long a thread is left alone after it was informed, or could not be.
const lookAgain = 10

// obstacle is why no worker can run a task.
type obstacle struct {
	reason string // a sentence without its full stop; "" if there is none, or if that is unknown
	key    string // of the message, which a thread gets once
	until  string // when the task starts
}

// late returns the tasks that are the first of their threads and have waited for as long as Observe.
func (r *Recovery) late(live []store.LiveRecord) (list []store.LiveRecord) {
	for _, rec := range live {
		if rec.State == store.Waiting && r.heads[rec.Thread] == rec.ID && time.Since(rec.Due()) >= r.Observe {
			list = append(list, rec)
		}
	}
	return list
}

// inform informs threads in the background. It does nothing while an earlier pass still does.
func (r *Recovery) inform(ctx context.Context, late []store.LiveRecord) {
	if len(late) == 0 || !r.informing.CompareAndSwap(false, true) {
		return
	}
	begun := r.Notices.Background(func() {
		defer r.informing.Store(false)
		r.informAll(ctx, late)
	})
	if !begun {
		r.informing.Store(false)
	}
}

// informAll says in the threads of late tasks, the oldest first, that no worker can run them or that their class is
// paused. It posts at most maxInformed messages, and none to a source that has just failed to post one. What it cannot
// read counts as no obstacle.
func (r *Recovery) informAll(ctx context.Context, late []store.LiveRecord) {
	paused, _ := r.Store.Paused.All(ctx)
	workers, _ := r.Store.Workers.List(ctx)
	if r.looked == nil {
		r.looked = map[string]time.Time{}
	}
	maps.DeleteFunc(r.looked, func(_ string, at time.Time) bool { return time.Since(at) >= lookAgain*r.Observe })
	informed, failed := 0, map[string]bool{}
	for _, rec := range late {
		if ctx.Err() != nil || informed == maxInformed {
			return
		}
		source := tasks.SourceOf(rec.ID)
		if _, is := r.looked[rec.ID]; is || failed[source] {
			continue
		}
		why := r.why(paused, workers, rec.Record)
		if why.reason == "" {
			continue
		}
		r.looked[rec.ID] = time.Now()
		said, err := r.tell(context.WithoutCancel(ctx), rec.ID, why)
		if said {
			informed++
		}
		failed[source] = err != nil
	}
}

// why says why no worker can run a task.
func (r *Recovery) why(paused map[string]store.Halt, workers []store.Worker, rec store.Record) obstacle {
	if halt, is := paused[rec.Class]; is {
		return obstacle{capacity.WhyPaused(rec.Class, halt), "paused", "they are resumed"}
	}
	if len(workers) == 0 { // this worker's heartbeat is not visible yet
		return obstacle{}
	}
	members := capacity.InPool(workers, rec.Pool)
	if len(members) == 0 && time.Since(rec.Due()) < emptyPool*r.Observe {
		return obstacle{}
	}
	if slices.ContainsFunc(members, func(w store.Worker) bool { return w.Draining }) { // another may replace it soon
		return obstacle{}
	}
	return obstacle{capacity.WhyNoWorkerFor(workers, rec.Pool, tasks.SourceOf(rec.ID)), "unable", "that is fixed"}
}

// tell informs the thread of a task, once, and reports whether it did so now. The error is its source's; a later pass
// tries again. A thread is not informed if this worker is not set up for its source or dies during the post: the task's
// status says the same.
func (r *Recovery) tell(ctx context.Context, id string, why obstacle) (said bool, _ error) {
	reason := strings.ToUpper(why.reason[:1]) + why.reason[1:]
	text := reason + ". This waits and starts by itself when " + why.until + "."
	first := false
	said, err := r.Notices.SayOnce(ctx, id, text, false, func(ctx context.Context) (_ bool, err error) {
		first, err = r.Store.Questions.FirstWhileWaiting(ctx, id, why.key)
		return first, err
	})
	if !first || err == nil {
		return said, nil
	}
	logline.Warn(r.Log, err, "say why a task waits", "run", id)
	logline.Warn(r.Log, r.Store.Questions.Unsay(ctx, id, why.key), "say why a task waits", "run", id)
	return false, err
}
