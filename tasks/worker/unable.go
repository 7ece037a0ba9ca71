package worker

import (
	"context"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// maxTold is how many threads one pass informs, so that a long queue does not use up a source's rate limit.
const maxTold = 20

// unableTold is the progress of informing threads. Like recovery, only a leader does it. Only one goroutine uses it.
type unableTold struct {
	leader *store.Leader
	after  string            // the walk through live tasks continues after this one; empty: at the first
	heads  map[string]string // by thread: the first of its tasks in this walk
	told   map[string]bool   // tasks that are done; FirstWhileWaiting knows those of other workers
}

// informUnable tells the threads of waiting tasks, once, that no worker can run them.
func (w *Worker) informUnable(ctx context.Context) {
	if w.health.ready() || !w.health.since(time.Time{}) {
		return
	}
	seen, err := w.store.Workers.List(ctx)
	why := tasks.WhyNoWorker(seen)
	if err != nil || why == "" || len(seen) == 0 { // this worker's heartbeat is not visible yet
		return
	}
	if term, err := w.unable.leader.Lead(ctx); err != nil || term == "" {
		return // another worker does it, or Redis is unreachable, which the reconciler logs
	}
	for told, looked := 0, 0; told < maxTold && looked < lookMost && ctx.Err() == nil; looked += lookStep {
		live, next, err := w.store.LiveAfter(ctx, w.unable.after, lookStep)
		if err != nil {
			return
		}
		if w.unable.after == "" {
			w.unable.begin()
		}
		w.unable.after = next
		for _, rec := range live { // the oldest first
			if !w.unable.due(rec.Record) || time.Since(rec.Due()) < w.timing.Observe {
				continue
			}
			said, over := w.tellWaiting(ctx, rec.ID, why)
			if w.unable.told[rec.ID] = over; said {
				told++
			}
			if told >= maxTold {
				w.unable.after = rec.ID
				return
			}
		}
		if next == "" {
			return // the next pass starts from the beginning
		}
	}
}

// begin starts a new walk. It forgets tasks that are no longer the first of their thread.
func (u *unableTold) begin() {
	still := map[string]bool{}
	for _, id := range u.heads {
		if u.told[id] {
			still[id] = true
		}
	}
	u.heads, u.told = map[string]string{}, still
}

// due reports whether a task is the first of its thread, waits, and has not been handled.
func (u *unableTold) due(rec store.Record) bool {
	if rec.Unreadable != "" {
		return false
	}
	if first, ok := u.heads[rec.Thread]; ok && first != rec.ID {
		return false
	}
	u.heads[rec.Thread] = rec.ID
	return rec.State == store.Waiting && !u.told[rec.ID]
}

// tellWaiting informs the thread of one task, unless that was done before or is impossible. over means that it need
// not be tried again.
func (w *Worker) tellWaiting(ctx context.Context, id, why string) (said, over bool) {
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	rec, err := w.store.Get(ctx, id)
	if err != nil {
		return false, false // it is gone, or Redis is unreachable
	}
	t, s, err := w.read(rec)
	if err != nil {
		return false, true // a worker that can read it will do it
	}
	to, ok := talker(s, t)
	if !ok {
		return false, true
	}
	if first, err := w.store.Questions.FirstWhileWaiting(ctx, id, "unable"); err != nil || !first {
		return false, err == nil
	}
	text := upperFirst(why) + ". This waits and starts by itself when that is fixed. To stop it, cancel it in the console or with " +
		"`enqueue cancel " + id + "`."
	if err := to.Say(ctx, t, text); err != nil {
		w.log.Warn("say that the task waits", "run", id, "thread", t.Thread, "err", err)
	}
	return true, true
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
