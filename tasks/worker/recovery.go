package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
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
		if _, err := tasks.EndWaiting(ctx, w.store, rec.ID, tasks.Ending{Kind: tasks.Lost, At: time.Now()}); err != nil {
			w.log.Warn("end task", "run", rec.ID, "err", err)
		}
		return // its message is in the outbox; a source that hangs must not hold up the next recovery
	}
	w.deliverFirst(ctx, now)
}

// deliverFirst enqueues a task that had its turn before all that wait now.
func (w *Worker) deliverFirst(ctx context.Context, rec store.Record) {
	err := w.queue.Enqueue(ctx, rec.ID, rec.Class, rec.Delivery, time.Time{})
	if err == nil {
		err = w.queue.ToFront(ctx, rec.ID, rec.Class, rec.Delivery)
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
			if _, err := tasks.EndWaiting(ctx, w.store, rec.ID, tasks.CancellationOf(rec.Record).Ending()); err != nil {
				w.log.Warn("end task", "run", rec.ID, "err", err)
			}
		case !rec.At.After(time.Now()):
			due = append(due, rec)
		}
	}
	if len(due) == 0 {
		return nil
	}
	present, alive, err := w.queue.Delivered(ctx, due)
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
		err = w.queue.Enqueue(ctx, rec.ID, rec.Class, now.Delivery, rec.At)
	}
	if err != nil {
		w.log.Warn("enqueue task", "run", rec.ID, "err", err)
		return
	}
	w.log.Info("task without delivery enqueued", "run", rec.ID, "thread", rec.Thread)
}

// passOver lets doctor tell of a live record that cannot be read, and lets its thread go on if no step can be taken with it. What another
// version may be able to read stays where it is.
func (w *Worker) passOver(ctx context.Context, rec store.LiveRecord) {
	err := w.store.SetAside(ctx, rec.ID)
	if err == nil {
		w.log.Error("unreadable record set aside", "run", rec.ID, "why", rec.Unreadable)
	}
	w.noteUnreadable(ctx, &tasks.UnreadableError{ID: rec.ID, Why: rec.Unreadable})
}

func (w *Worker) noteUnreadable(ctx context.Context, e *tasks.UnreadableError) {
	if err := w.store.Doctor.NoteUnreadable(ctx, map[string]string{e.ID: e.Why}); err != nil {
		w.log.Warn("note unreadable record", "run", e.ID, "err", err)
	}
}

// A Redis that comes back without its last second (appendfsync everysec), or from a backup, may have forgotten that a task has ended, and
// its run is taken for one whose worker died. The thread still has the final message: a source is asked for it before a task is run again.

// recallLimit bounds how long a thread is asked.
const recallLimit = 30 * time.Second

// alreadyTold is the cause of a task that does not run again because its final message is out.
type alreadyTold struct{ ending tasks.Ending }

func (*alreadyTold) Error() string { return "the final message is in the thread already" }

// recall looks in the thread for the final message of a task that was begun before. A source that cannot be asked just now and says when it can be
// is waited for: the work would be done twice. Any other thread that cannot be asked keeps no task from running: the report looks again before it
// posts.
func (w *Worker) recall(r *run) error {
	rec := r.claim.Record()
	source, ok := r.source.(tasks.Recaller)
	if !ok || rec.Attempt <= 1 && rec.Crashes == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, recallLimit)
	defer cancel()
	e, err := source.Final(ctx, r.task, rec.Retried)
	if wait, ok := errors.AsType[*tasks.ErrLater](err); ok {
		return wait
	}
	if err != nil && r.ctx.Err() == nil {
		w.log.Warn("look for an earlier final message", "run", r.task.ID, "thread", r.task.Thread, "err", err)
	}
	if err != nil || e == nil {
		return nil
	}
	w.log.Warn("task was answered before, and Redis has forgotten it", "run", r.task.ID, "thread", r.task.Thread, "ended", e.At)
	e.Found = true
	if e.Kind == tasks.Answered {
		e.Reason = "This was answered before: the answer is where it was asked for. Its record was lost."
	} else {
		e.Reason = "This ended before, as is said where it was asked for. Its record was lost."
	}
	return &alreadyTold{ending: *e}
}

// endCovered ends the tasks that a message which was found has answered as well, and that wait again.
func (w *Worker) endCovered(r *run, e tasks.Ending) {
	for _, id := range e.Covers {
		own := tasks.Ending{Kind: e.Kind, At: e.At, Found: true, Reason: "This was answered together with task " + r.task.ID + "."}
		if _, err := tasks.EndWaiting(r.detached, w.store, id, own); err != nil {
			w.log.Warn("end task", "run", id, "err", err)
		}
	}
}
