package tasks

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/store"
)

// reconcile looks at every task that has not ended and mends what a death left behind: a run without a claim goes back to
// waiting, a waiting task without a delivery gets one. Every worker does this; the store lets one of them win.
func (w *Worker) reconcile(ctx context.Context) {
	w.seen.look(time.Now(), 2*w.timing.Reconcile+time.Second)
	live, err := w.store.Live(ctx)
	if err != nil {
		w.unseen(ctx, err)
		return
	}
	present := map[string]bool{}
	for _, rec := range live {
		if ctx.Err() != nil {
			return
		}
		switch rec.State {
		case store.Running:
			key := rec.ID + "/" + strconv.FormatInt(rec.Fence, 10)
			if rec.Claimed {
				continue
			}
			present[key] = true
			if w.seen.since(key) >= w.timing.Observe {
				w.recover(ctx, rec)
			}
		case store.Waiting:
			w.deliver(ctx, rec)
		}
	}
	w.seen.keep(present)
}

// unseen notes that Redis did not answer: what was seen before proves nothing any more.
func (w *Worker) unseen(ctx context.Context, err error) {
	w.seen.forget()
	if ctx.Err() == nil {
		w.log.Warn("reconcile", "err", err)
	}
}

// recover takes over a run whose worker died. Its keeper has ended it long ago (DESIGN invariant 1).
func (w *Worker) recover(ctx context.Context, rec store.LiveRecord) {
	n, err := w.store.Requeue(ctx, rec.ID, rec.Delivery, rec.Fence, true)
	if errors.Is(err, store.ErrStale) {
		return // somebody was faster, or it lives after all
	}
	if err != nil {
		w.unseen(ctx, err)
		return
	}
	w.meter.Returned(rec.Class, ReturnCrash)
	w.log.Warn("worker died, task recovered", "run", rec.ID, "thread", rec.Thread, "crashes", rec.Crashes+1)
	if rec.Crashes+1 >= maxCrashes {
		if _, err := endWaiting(ctx, w.store, rec.ID, Ending{Kind: Lost, At: time.Now()}); err != nil {
			w.log.Warn("end task", "run", rec.ID, "err", err)
		}
		return // its message is in the outbox; a source that hangs must not hold up the next recovery
	}
	if err := w.queue.enqueue(ctx, rec.ID, rec.Class, n, time.Time{}); err != nil {
		w.log.Warn("enqueue task", "run", rec.ID, "err", err) // the next look finds it without a delivery
	}
}

// deliver sees to it that a waiting task has a delivery: the submitter may have died before it enqueued.
func (w *Worker) deliver(ctx context.Context, rec store.LiveRecord) {
	if rec.CancelCause != "" {
		// Cancelled while it ran, and then it was handed back or its worker died.
		if _, err := endWaiting(ctx, w.store, rec.ID, tombstone(rec.Record).ending()); err != nil {
			w.log.Warn("end task", "run", rec.ID, "err", err)
		}
		return
	}
	present, alive, err := w.queue.delivered(rec.ID, rec.Class, rec.Delivery)
	if err != nil {
		w.unseen(ctx, err)
		return
	}
	if present && alive {
		return
	}
	n := rec.Delivery
	if present { // finished or archived: its ID is taken
		n, err = w.store.Requeue(ctx, rec.ID, rec.Delivery, rec.Fence, false)
		if errors.Is(err, store.ErrStale) {
			return
		}
	}
	if err == nil {
		err = w.queue.enqueue(ctx, rec.ID, rec.Class, n, rec.At)
	}
	if err != nil {
		w.log.Warn("enqueue task", "run", rec.ID, "err", err)
		return
	}
	w.log.Info("task without delivery enqueued", "run", rec.ID, "thread", rec.Thread)
}

// sightings remembers since when a run is seen without its claim. Only reconcile uses it, from one goroutine.
type sightings struct {
	first map[string]time.Time
	last  time.Time // when we looked last
}

// look begins a look at all tasks. After a pause longer than gap nothing was "seen in every look" any more: its owner may have put
// the claim back and lost it again meanwhile.
func (s *sightings) look(now time.Time, gap time.Duration) {
	if now.Sub(s.last) > gap {
		s.forget()
	}
	s.last = now
}

// since is how long the run has been seen without a claim, in every look.
func (s *sightings) since(key string) time.Duration {
	first, ok := s.first[key]
	if !ok {
		s.first[key] = time.Now()
		return 0
	}
	return time.Since(first)
}

// keep forgets all runs but those.
func (s *sightings) keep(present map[string]bool) {
	for key := range s.first {
		if !present[key] {
			delete(s.first, key)
		}
	}
}

func (s *sightings) forget() { clear(s.first) }
