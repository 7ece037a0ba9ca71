package tasks

import (
	"context"
	"errors"
	"time"
)

// A Redis that comes back without its last second (appendfsync everysec), or from a backup, may have forgotten that a task has ended, and
// its run is taken for one whose worker died. The thread knows better: before a task is run again it is asked for the final message.

// recallLimit bounds how long a thread is asked.
const recallLimit = 30 * time.Second

// alreadyTold is the cause of a task that does not run again because its final message is out.
type alreadyTold struct{ ending Ending }

func (*alreadyTold) Error() string { return "the final message is in the thread already" }

// recall looks in the thread for the final message of a task that was begun before. A source that cannot be asked just now and says when it can be
// is waited for: the work would be done twice. Any other thread that cannot be asked keeps no task from running: the report looks again before it
// posts.
func (w *Worker) recall(r *run) error {
	rec := r.claim.Record()
	source, ok := r.source.(Recaller)
	if !ok || rec.Attempt <= 1 && rec.Crashes == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, recallLimit)
	defer cancel()
	e, err := source.Final(ctx, r.task, rec.Retried)
	if wait, ok := errors.AsType[*ErrLater](err); ok {
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
	if e.Kind == Answered {
		e.Reason = "This was answered before: the answer is where it was asked for. Its record was lost."
	} else {
		e.Reason = "This ended before, as is said where it was asked for. Its record was lost."
	}
	return &alreadyTold{ending: *e}
}

// endCovered ends the tasks that a message which was found has answered as well, and that wait again.
func (w *Worker) endCovered(r *run, e Ending) {
	for _, id := range e.Covers {
		own := Ending{Kind: e.Kind, At: e.At, Found: true, Reason: "This was answered together with task " + r.task.ID + "."}
		if _, err := endWaiting(r.detached, w.store, id, own); err != nil {
			w.log.Warn("end task", "run", id, "err", err)
		}
	}
}
