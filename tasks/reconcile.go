package tasks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/errand-fleet/errand/store"
)

// recovery repairs what a death leaves behind: a run without a claim waits again, and a waiting task without a delivery gets one. Every worker
// is a candidate for it, and the leader alone does it; where two believe that they lead, the store lets one of them win. Used by one goroutine.
type recovery struct {
	leader *store.Leader
	after  string // the live task at which the walk through all of them goes on; empty: at the first
}

// A look at live tasks reads lookStep at once, few enough that to repair all of them does not take as long as a lead lasts, and at most lookMost.
// A larger backlog takes several looks, which hold up no recovery: what runs is looked at first, each time.
const (
	lookStep = 100
	lookMost = 5000
)

// reconcile looks at every run, and goes on with the walk through all live tasks.
func (w *Worker) reconcile(ctx context.Context) {
	term, err := w.recovery.leader.Lead(ctx)
	if err == nil && term != "" {
		err = w.examine(ctx, term)
	}
	if err != nil && ctx.Err() == nil {
		w.log.Warn("reconcile", "err", err)
	}
}

func (w *Worker) examine(ctx context.Context, term string) error {
	running, err := w.store.Running(ctx)
	for part := range slices.Chunk(running, lookStep) {
		if err == nil {
			err = w.recoverDead(ctx, term, part)
		}
		if again, lerr := w.recovery.leader.Lead(ctx); err == nil && (lerr != nil || again != term) {
			return lerr // somebody else may have begun
		}
	}
	// Repairs take time, too: after that much the rest is for the next look.
	for begun, looked := time.Now(), 0; err == nil && looked < lookMost && time.Since(begun) < w.timing.Reconcile; looked += lookStep {
		if again, err := w.recovery.leader.Lead(ctx); err != nil || again != term {
			return err // somebody else may have begun
		}
		var live []store.LiveRecord
		if live, w.recovery.after, err = w.store.LiveAfter(ctx, w.recovery.after, lookStep); err != nil {
			return err
		}
		for _, rec := range live {
			if rec.Unreadable != "" {
				w.passOver(ctx, rec)
			}
		}
		if err = w.recoverDead(ctx, term, live); err == nil {
			err = w.deliver(ctx, live)
		}
		if w.recovery.after == "" {
			break // the next look begins anew
		}
	}
	return err
}

// resign lets another worker lead at once.
func (w *Worker) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := w.recovery.leader.Resign(ctx); err != nil {
		w.log.Warn("resign", "worker", w.id, "err", err)
	}
}

// recoverDead takes over the runs whose claims have been missing for long enough. Redis counts that time, so that it goes on whoever looks and
// however long a look takes. Whoever begins to lead begins to count: a Redis that was away for as long as a lead lasts may have lost claims of
// workers that live, and after a shorter time these have what is left of Observe to put them back.
func (w *Worker) recoverDead(ctx context.Context, term string, live []store.LiveRecord) error {
	unclaimed := slices.DeleteFunc(slices.Clone(live), func(rec store.LiveRecord) bool {
		return rec.State != store.Running || rec.Claimed || rec.Unreadable != ""
	})
	silent, err := w.store.Silent(ctx, term, unclaimed...)
	if err != nil {
		return err
	}
	for _, rec := range unclaimed {
		if since, is := silent[rec.ID]; is && since >= w.timing.Observe { // else the owner has put its claim back, or it ended
			w.recover(ctx, rec)
		}
	}
	return nil
}

// recover takes over a run whose worker died. Its keeper has ended it long ago (DESIGN invariant 1).
func (w *Worker) recover(ctx context.Context, rec store.LiveRecord) {
	absorbed, aerr := w.store.Absorbed(ctx, rec.ID) // nothing takes more into a run that is dead
	now, err := w.store.Requeue(ctx, rec.ID, rec.Delivery, rec.Fence, true)
	if errors.Is(err, store.ErrStale) {
		return // somebody was faster, or it lives after all
	}
	if err != nil {
		w.log.Warn("recover task", "run", rec.ID, "err", err)
		return
	}
	w.meter.Returned(rec.Class, ReturnCrash)
	w.log.Warn("worker died, task recovered", "run", rec.ID, "thread", rec.Thread, "crashes", now.Crashes)
	if aerr != nil {
		w.log.Warn("recover what a run had absorbed", "run", rec.ID, "err", aerr) // the walk finds what has no delivery
	}
	for _, other := range slices.Backward(absorbed) { // the oldest is the last that is put in front
		if other, err := w.store.Get(ctx, other.ID); err == nil && other.State == store.Waiting { // else it stays with the run
			w.deliverFirst(ctx, other)
		}
	}
	if now.Crashes > rec.Crashes && now.Crashes >= maxCrashes { // else this death does not count
		if _, err := endWaiting(ctx, w.store, rec.ID, Ending{Kind: Lost, At: time.Now()}); err != nil {
			w.log.Warn("end task", "run", rec.ID, "err", err)
		}
		return // its message is in the outbox; a source that hangs must not hold up the next recovery
	}
	w.deliverFirst(ctx, now)
}

// deliverFirst enqueues a task that had its turn before all that wait now.
func (w *Worker) deliverFirst(ctx context.Context, rec store.Record) {
	err := w.queue.enqueue(ctx, rec.ID, rec.Class, rec.Delivery, time.Time{})
	if err == nil {
		err = w.queue.toFront(ctx, rec.ID, rec.Class, rec.Delivery)
	}
	if err != nil {
		w.log.Warn("enqueue task", "run", rec.ID, "err", err) // the walk finds it without a delivery
	}
}

// deliver sees to it that waiting tasks have a delivery: the submitter may have died before it enqueued. One that is not due yet, such as a task
// parked by a usage limit, needs none, and is looked for when it is.
func (w *Worker) deliver(ctx context.Context, live []store.LiveRecord) error {
	var due []store.LiveRecord
	for _, rec := range live {
		switch {
		case rec.State != store.Waiting, rec.Unreadable != "":
		case rec.CancelCause != "":
			// Cancelled while it ran, and then it was handed back or its worker died.
			if _, err := endWaiting(ctx, w.store, rec.ID, tombstone(rec.Record).ending()); err != nil {
				w.log.Warn("end task", "run", rec.ID, "err", err)
			}
		case !rec.At.After(time.Now()):
			due = append(due, rec)
		}
	}
	if len(due) == 0 {
		return nil
	}
	present, alive, err := w.queue.delivered(ctx, due)
	if err != nil {
		return err
	}
	for i, rec := range due {
		if !alive[i] {
			w.redeliver(ctx, rec, present[i])
		}
	}
	return nil
}

// redeliver enqueues a task again whose delivery is gone, or finished or archived: then its ID is taken.
func (w *Worker) redeliver(ctx context.Context, rec store.LiveRecord, taken bool) {
	now, err := rec.Record, error(nil)
	if taken {
		now, err = w.store.Requeue(ctx, rec.ID, rec.Delivery, rec.Fence, false)
		if errors.Is(err, store.ErrStale) {
			return
		}
	}
	if err == nil {
		err = w.queue.enqueue(ctx, rec.ID, rec.Class, now.Delivery, rec.At)
	}
	if err != nil {
		w.log.Warn("enqueue task", "run", rec.ID, "err", err)
		return
	}
	w.log.Info("task without delivery enqueued", "run", rec.ID, "thread", rec.Thread)
}
