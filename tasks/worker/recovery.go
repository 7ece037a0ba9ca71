package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// recovery repairs the state that a dead worker leaves: a run without a claim waits again, and a waiting task without
// a delivery gets one. Every worker is a candidate, and only the leader does it. If two workers believe that they
// lead, the store lets one of them win. Only one goroutine uses it.
type recovery struct {
	leader *store.Leader
	after  string // the walk through all live tasks continues after this one; empty: at the first
}

// One pass over live tasks reads lookStep tasks at a time, few enough to be repaired within a leader's lease, and at
// most lookMost. A larger backlog takes several passes. Recovery is not delayed by that, because each pass examines
// the running tasks first.
const (
	lookStep = 100
	lookMost = 5000
)

// reconcile examines every run and continues the walk through all live tasks.
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
	// Repairs take time, too: after one interval, the rest is left to the next pass.
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
			break // the next pass starts from the beginning
		}
	}
	return err
}

// resign gives up the leadership, so that another worker leads at once.
func (w *Worker) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := w.recovery.leader.Resign(ctx); err != nil {
		w.log.Warn("resign", "worker", w.id, "err", err)
	}
}

// recoverDead takes over runs whose claims have been missing for Timing.Observe. Redis counts that time, so it
// continues across passes and leaders' restarts of a pass. A new leader starts counting from zero: if Redis was
// unreachable for as long as a lease, claims of live workers may be missing, and after a shorter time these workers
// have the rest of Observe to restore them.
func (w *Worker) recoverDead(ctx context.Context, term string, live []store.LiveRecord) error {
	unclaimed := slices.DeleteFunc(slices.Clone(live), func(rec store.LiveRecord) bool {
		return rec.State != store.Running || rec.Claimed || rec.Unreadable != ""
	})
	silent, err := w.store.Silent(ctx, term, unclaimed...)
	if err != nil {
		return err
	}
	for _, rec := range unclaimed {
		if since, is := silent[rec.ID]; is && since >= w.timing.Observe { // otherwise the owner has restored its claim, or the task ended
			w.recover(ctx, rec)
		}
	}
	return nil
}

// recover takes over a run whose worker died. The run's keeper ended it long ago (DESIGN invariant 1).
func (w *Worker) recover(ctx context.Context, rec store.LiveRecord) {
	absorbed, aerr := w.store.Absorbed(ctx, rec.ID) // a dead run absorbs no more
	now, err := w.store.Requeue(ctx, rec.ID, rec.Delivery, rec.Fence, true)
	if errors.Is(err, store.ErrStale) {
		return // another worker was faster, or the run is alive after all
	}
	if err != nil {
		w.log.Warn("recover task", "run", rec.ID, "err", err)
		return
	}
	w.meter.Returned(rec.Class, ReturnCrash)
	w.log.Warn("worker died, task recovered", "run", rec.ID, "thread", rec.Thread, "crashes", now.Crashes)
	if aerr != nil {
		w.log.Warn("recover what a run had absorbed", "run", rec.ID, "err", aerr) // the walk finds tasks without a delivery
	}
	for _, other := range slices.Backward(absorbed) { // the oldest is put in front last
		if other, err := w.store.Get(ctx, other.ID); err == nil && other.State == store.Waiting { // otherwise it stays with the run
			w.deliverFirst(ctx, other)
		}
	}
	if now.Crashes > rec.Crashes && now.Crashes >= maxCrashes { // otherwise this death does not count
		if _, err := tasks.EndWaiting(ctx, w.store, rec.ID, tasks.Ending{Kind: tasks.Lost, At: time.Now()}); err != nil {
			w.log.Warn("end task", "run", rec.ID, "err", err)
		}
		return // the outbox posts the message, so that a source that hangs does not delay the next recovery
	}
	w.deliverFirst(ctx, now)
}

// deliverFirst enqueues a task that has had its turn before all that wait now.
func (w *Worker) deliverFirst(ctx context.Context, rec store.Record) {
	err := w.queue.Enqueue(ctx, rec.ID, rec.Class, rec.Delivery, time.Time{})
	if err == nil {
		err = w.queue.ToFront(ctx, rec.ID, rec.Class, rec.Delivery)
	}
	if err != nil {
		w.log.Warn("enqueue task", "run", rec.ID, "err", err) // the walk finds it without a delivery
	}
}

// deliver makes sure that due tasks have a delivery, because the submitter may have died before it enqueued one. A
// task that is not due yet, such as one that waits for a usage limit, needs none until then.
func (w *Worker) deliver(ctx context.Context, live []store.LiveRecord) error {
	var due []store.LiveRecord
	for _, rec := range live {
		switch {
		case rec.State != store.Waiting, rec.Unreadable != "":
		case rec.CancelCause != "":
			// It was cancelled while it ran, and then it was handed back or its worker died.
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

// redeliver enqueues a task whose delivery is gone, finished or archived. A finished or archived delivery keeps its
// ID taken.
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

// passOver reports a live record that cannot be decoded, and sets it aside if no version can use it, so that its
// thread continues. A record that another version may be able to read stays.
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

// Redis may come back without its last second (appendfsync everysec) or from a backup, and may then have lost a
// task's ending, so that the task looks like one whose worker died. The thread still has the final message. So recall
// asks the source for it before a task is run again.

// recallLimit bounds the search for an earlier final message.
const recallLimit = 30 * time.Second

// alreadyTold is the cause of a task that does not run again because its final message is posted.
type alreadyTold struct{ ending tasks.Ending }

func (*alreadyTold) Error() string { return "the final message is in the thread already" }

// recall looks in the thread for the final message of a task that has started before. If the source is rate limited,
// the task waits, because otherwise the work would be done twice. After any other error the task runs, and the report
// looks again before it posts.
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
		e.Reason = "This was answered before, and the record was lost. The answer is in the thread."
	} else {
		e.Reason = "This ended before, and the record was lost. The thread says how."
	}
	return &alreadyTold{ending: *e}
}

// endCovered ends the waiting tasks that a found message has answered as well.
func (w *Worker) endCovered(r *run, e tasks.Ending) {
	for _, id := range e.Covers {
		own := tasks.Ending{Kind: e.Kind, At: e.At, Found: true, Reason: "This was answered together with task " + r.task.ID + "."}
		if _, err := tasks.EndWaiting(r.detached, w.store, id, own); err != nil {
			w.log.Warn("end task", "run", id, "err", err)
		}
	}
}
