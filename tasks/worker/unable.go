package worker

import (
	"context"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// maxTold is how many threads are told at a time why they wait, so that a long queue does not use up what a source may post.
const maxTold = 20

// unableTold is how far the threads have been told, and by whom: one worker for all, as with recovery. Used by one goroutine.
type unableTold struct {
	leader *store.Leader
	after  string            // the live task at which the walk goes on; empty: at the first
	heads  map[string]string // by thread: the first of its tasks that the walk has come to
	told   map[string]bool   // the tasks that this worker need not look at again; FirstWaiting knows what others have told
}

// tellUnable tells the threads of waiting tasks once that no worker can run them.
func (w *Worker) tellUnable(ctx context.Context) {
	if w.health.ready() || !w.health.since(time.Time{}) {
		return
	}
	seen, err := w.store.Workers.List(ctx)
	why := tasks.WhyNoWorker(seen)
	if err != nil || why == "" || len(seen) == 0 { // we have not been heard of ourselves
		return
	}
	if term, err := w.unable.leader.Lead(ctx); err != nil || term == "" {
		return // another tells them, or the reconciler says that Redis is away
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
			return // the next look begins anew
		}
	}
}

// begin begins the walk anew. What was told and is not the first of its thread any more is over.
func (u *unableTold) begin() {
	still := map[string]bool{}
	for _, id := range u.heads {
		if u.told[id] {
			still[id] = true
		}
	}
	u.heads, u.told = map[string]string{}, still
}

// due reports whether a task is the first of its thread, waits, and has not been looked at.
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

// tellWaiting tells the thread of one task, unless it had been told or nobody can be. over means that it need not be tried again.
func (w *Worker) tellWaiting(ctx context.Context, id, why string) (said, over bool) {
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	rec, err := w.store.Get(ctx, id)
	if err != nil {
		return false, false // it is gone, or Redis is away
	}
	t, s, err := w.read(rec)
	if err != nil {
		return false, true // who can run it says so
	}
	to, ok := talker(s, t)
	if !ok {
		return false, true
	}
	if first, err := w.store.Questions.FirstWhileWaiting(ctx, id, "unable"); err != nil || !first {
		return false, err == nil
	}
	text := upperFirst(why) + ". This waits, and starts by itself when that is mended. To give it up instead, cancel it in the console or with " +
		"`enqueue cancel " + id + "`."
	if err := to.Say(ctx, t, text); err != nil {
		w.log.Warn("say that the task waits", "run", id, "thread", t.Thread, "err", err)
	}
	return true, true
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
