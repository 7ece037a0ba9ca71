package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/workspace"
)

// process is the life of one delivery, from the queue to the posted answer. What it returns is for the queue: nil means that the
// delivery is done with, *ErrLater that the task waits, and any other error that errand itself did not work. How the agent fared
// is in the task's ending.
//
// When it returns, no process of the run is alive, and its ending is stored or nothing was started.
func (w *Worker) process(ctx context.Context, class, id string, delivery int) error {
	slot, ok := w.slots.take(class)
	if !ok {
		return later(slotWait, "all slots are taken")
	}
	defer slot()

	claim, err := w.store.Claim(ctx, id, delivery, w.id)
	if err != nil {
		return w.unclaimed(id, err)
	}
	run := w.hold(ctx, claim)
	defer run.release()

	task, source, err := w.read(claim.Record())
	if err != nil {
		return err
	}
	report, ending, err := w.execute(run, task, source)
	switch {
	case errors.Is(run.cause(), errClaimLost):
		w.log.Warn("claim lost", "run", id, "thread", task.Thread)
		return nil // somebody else decides now; whatever we would write is refused
	case err != nil:
		return w.handBack(run, err)
	}
	if err := w.persist(run, "end", func() error { return claim.End(ctx, mustJSON(ending)) }); err != nil {
		return err
	}
	w.log.Info("task ended", "run", id, "thread", task.Thread, "source", task.Source, "attempt", claim.Record().Attempt,
		"outcome", string(ending.Kind), "dur", ending.Result.Duration.Round(time.Millisecond))
	w.post(ctx, id, report.get())
	return nil
}

// execute does the work of a claimed task. An error means that it must be tried again, by this worker or another.
func (w *Worker) execute(run *run, t Task, source Source) (report *opening, _ Ending, _ error) {
	if run.ctx.Err() != nil {
		return w.refused(run, nil, run.cause())
	}
	if e := w.health.problem(run.detached); e != nil {
		return nil, w.failure(e), nil
	}
	files, err := w.workspace.Files(t.Thread)
	if err != nil {
		return nil, Ending{}, err
	}
	brief, err := source.Brief(run.ctx, t, files)
	if err != nil {
		return w.refused(run, report, fmt.Errorf("brief: %w", err))
	}
	report = w.open(run, source, t)
	place, err := w.place(run.ctx, t, brief, files)
	if err != nil {
		return w.refused(run, report, err)
	}
	session, goOn, err := w.session(run.ctx, t, brief)
	if err != nil {
		return w.refused(run, report, err)
	}
	host := &host{policy: place.policy(t.Profile), record: w.record(run), report: report}
	result, err := w.runner.Run(run.ctx, w.spec(t, brief, place, session, goOn), host)
	host.record.close()
	if e, ok := errors.AsType[*agent.Error](err); ok && e.Class != agent.ClassInternal {
		return report, w.failure(e), nil
	}
	if err != nil {
		return w.refused(run, report, err)
	}
	w.saveSession(run, t, brief, result)
	return w.conclude(run, report, t, result)
}

// conclude turns what a run came to into the task's ending; a run that was only interrupted has none yet.
func (w *Worker) conclude(run *run, report *opening, t Task, r agent.Result) (*opening, Ending, error) {
	e := Ending{Result: r, At: time.Now()}
	switch r.Outcome {
	case agent.Done:
		e.Kind = Answered
	case agent.Failed:
		e.Kind, e.Reason = Failed, r.Error.User
	case agent.Limit:
		e.Kind, e.Limit = TimedOut, t.Options.Limit.String()
	case agent.Stalled:
		e.Kind, e.Limit = Stalled, w.cfg.IdleLimit.String()
	case agent.Stopped:
		by, ok := errors.AsType[cancelled](run.cause())
		if !ok {
			return report, Ending{}, run.cause()
		}
		e.Kind, e.By = Cancelled, by.by
	}
	return report, e, nil
}

// stoppedBefore is the ending of a task that was cancelled before it started.
func (w *Worker) stoppedBefore(run *run) (Ending, bool) {
	by, ok := errors.AsType[cancelled](run.cause())
	return Ending{Kind: Cancelled, By: by.by, At: time.Now()}, ok
}

// failure is the ending of a task whose agent could not be run.
func (w *Worker) failure(e *agent.Error) Ending {
	return Ending{Kind: Failed, Reason: e.User, Result: agent.Result{Outcome: agent.Failed, Error: e}, At: time.Now()}
}

// refused sorts an error from before the run: what the person has to change ends the task, and so does a cancel or an error that
// has come too often; the rest is tried again.
func (w *Worker) refused(run *run, report *opening, err error) (*opening, Ending, error) {
	if ending, ok := w.stoppedBefore(run); ok {
		return report, ending, nil
	}
	if run.ctx.Err() != nil {
		return report, Ending{}, run.cause()
	}
	e := Ending{Kind: Refused, At: time.Now()}
	switch input, ok := errors.AsType[*InputError](err); {
	case ok:
		e.Reason = input.Sentence
	case errors.Is(err, workspace.ErrNotFound), errors.Is(err, workspace.ErrAuth), errors.Is(err, workspace.ErrRef):
		e.Reason = "The repository could not be prepared: " + err.Error() + "."
	case run.claim.Record().Attempt >= maxAttempts:
		w.log.Error("task failed", "run", run.claim.ID(), "attempt", run.claim.Record().Attempt, "err", err)
		e.Kind, e.Reason = Failed, fmt.Sprintf("This did not work in %d attempts: %v.", maxAttempts, err)
	default:
		return report, Ending{}, err
	}
	return report, e, nil
}

// handBack returns an unfinished task: at once when this worker is shutting down, else after a while, as one attempt more.
func (w *Worker) handBack(run *run, cause error) error {
	drained := errors.Is(cause, errDrain)
	wait := later(backoff(run.claim.Record().Attempt), cause.Error())
	if drained {
		wait.At = time.Now()
	} else {
		w.log.Warn("task will be tried again", "run", run.claim.ID(), "attempt", run.claim.Record().Attempt, "err", cause)
	}
	err := w.persist(run, "return", func() error { return run.claim.Return(run.detached, wait.At, !drained) })
	if err != nil {
		return err
	}
	return wait
}

// unclaimed says what a delivery does that could not claim its task.
func (w *Worker) unclaimed(id string, err error) error {
	if due, ok := errors.AsType[*store.NotDue](err); ok {
		return &ErrLater{At: due.At, Why: err.Error()}
	}
	switch {
	case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrStale), errors.Is(err, store.ErrNotFound):
		return nil // nothing is left to do for this delivery
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrRunning):
		return later(busyWait, err.Error())
	}
	return fmt.Errorf("claim task %s: %w", id, err)
}
