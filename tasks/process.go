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
	slot, err := w.slots.take(class)
	if err != nil {
		return later(slotWait, err.Error())
	}
	defer slot.release()

	claim, err := w.store.Claim(ctx, id, delivery, w.id, w.cfg.caps()...)
	if err != nil {
		return w.unclaimed(id, err)
	}
	run := w.hold(ctx, claim)
	defer w.upload(run) // when the thread is free again: nobody waits for it
	defer run.release()
	run.slot = slot

	task, report, ending, err := w.execute(run)
	if err != nil {
		return w.handBack(run, err)
	}
	stored, err := w.end(run, ending)
	if err != nil || !stored {
		return err
	}
	w.log.Info("task ended", "run", id, "thread", task.Thread, "source", task.Source, "attempt", claim.Record().Attempt,
		"outcome", string(ending.Kind), "dur", ending.Result.Duration.Round(time.Millisecond))
	w.post(run.detached, id, report.get())
	return nil
}

// execute does the work of a claimed task. An error means that it must be tried again, by this worker or another.
func (w *Worker) execute(run *run) (t Task, report *opening, ending Ending, err error) {
	stop := func(err error) (Task, *opening, Ending, error) {
		ending, err := w.refused(run, err)
		return t, report, ending, err
	}
	t, source, err := w.read(run.claim.Record())
	if err != nil {
		return stop(err)
	}
	if run.mail, err = w.mailbox(run, t, source); err != nil {
		return stop(err)
	}
	if run.ctx.Err() != nil {
		return stop(run.cause())
	}
	if e := w.health.problem(run.ctx); e != nil {
		return stop(e)
	}
	if err := w.admit(run, t, source); err != nil {
		return stop(err)
	}
	files, err := w.workspace.Files(t.Thread)
	if err != nil {
		return stop(err)
	}
	brief, err := source.Brief(run.ctx, t, files)
	if err != nil {
		return stop(fmt.Errorf("brief: %w", err))
	}
	if t.Options.MaxUSD, err = w.afford(run, t); err != nil {
		return stop(err)
	}
	report = w.open(run, source, t)
	before, err := w.past(run.ctx, run.claim.Record())
	if err != nil {
		return stop(err)
	}
	place, err := w.place(run.ctx, t, brief, files, before)
	if err != nil {
		return stop(err)
	}
	if err := run.mail.resume(before); err != nil {
		return stop(err)
	}
	talked, err := w.conversation(run.ctx, t, brief, before, run.mail.said())
	if err != nil {
		return stop(err)
	}
	host := &host{record: w.record(run), report: report, mail: run.mail, slow: w.slow(run)}
	spec := w.spec(t, brief, place, talked, before)
	host.talk = w.talk(run, t, source, host.record.add)
	spec.Tools = host.talk.tools(place)
	w.checkpoints(run, place, &spec)
	run.mail.open(brief, files, spec.Prompt.ID, host.record.add)
	run.slot.begin()
	run.logs.begin(w.cfg.LogDir, t.ID)
	result, err := w.runner.Run(run.ctx, spec, host)
	run.logs.end()
	run.mail.close()
	host.record.close()
	if err != nil {
		return stop(err)
	}
	w.heed(run, result)
	bill := w.settle(run, result)
	ending, err = w.conclude(run, t, result)
	ending.Bill = bill
	switch {
	case err == nil:
		talked.keep(run, w, t, brief, result)
		err = w.publish(run, t, place, &ending)
	case !errors.Is(err, errClaimLost): // whoever has the claim now has the say
		w.handOver(run, place, spec, result, err)
		w.announce(run, t, source, err)
	}
	return t, report, ending, err
}

// conclude turns what a run came to into the task's ending. A run that was only interrupted has none: the error is what did it. Nor has one
// that failed and is tried again: the error says when.
func (w *Worker) conclude(run *run, t Task, r agent.Result) (Ending, error) {
	e := Ending{Result: r, At: time.Now()}
	next, given := w.again(run, r)
	if next != nil {
		return Ending{}, next
	}
	switch r.Outcome {
	case agent.Done:
		e.Kind = Answered
	case agent.Failed:
		e.Kind, e.Reason = Failed, r.Error.User+given
	case agent.Limit:
		e.Kind, e.Limit = TimedOut, t.Options.Limit.String()
	case agent.Stalled:
		e.Kind, e.Limit = Stalled, w.cfg.IdleLimit.String()
	case agent.Stopped:
		by, ok := errors.AsType[cancelled](run.cause())
		if !ok {
			return Ending{}, run.cause()
		}
		e.Kind, e.By = Cancelled, by.by
	}
	return e, nil
}

// stoppedBefore is the ending of a task that was cancelled before it started.
func (w *Worker) stoppedBefore(run *run) (Ending, bool) {
	by, ok := errors.AsType[cancelled](run.cause())
	return Ending{Kind: Cancelled, By: by.by, At: time.Now()}, ok
}

// refused sorts an error from before the run: what the person or an operator has to change ends the task, and so does a cancel or an
// error that has come too often; the rest is tried again, and is returned.
func (w *Worker) refused(run *run, err error) (Ending, error) {
	if ending, ok := w.stoppedBefore(run); ok {
		return ending, nil
	}
	if run.ctx.Err() != nil {
		return Ending{}, run.cause()
	}
	e := Ending{Kind: Refused, At: time.Now()}
	input, mistake := errors.AsType[*InputError](err)
	failure, failed := errors.AsType[*agent.Error](err)
	_, wait := errors.AsType[*ErrLater](err)
	switch {
	case wait:
		return Ending{}, err
	case mistake:
		e.Reason = input.Sentence
	case failed && failure.Class != agent.ClassInternal && failure.Class.Retry() != agent.RetrySoon:
		e.Kind, e.Reason = Failed, failure.User
		e.Result = agent.Result{Outcome: agent.Failed, Error: failure}
	case errors.Is(err, workspace.ErrNotFound), errors.Is(err, workspace.ErrAuth), errors.Is(err, workspace.ErrRef):
		e.Reason = "The repository could not be prepared: " + err.Error() + "."
	case attempts(run.claim.Record()) >= maxAttempts:
		w.log.Error("task failed", "run", run.claim.ID(), "attempt", run.claim.Record().Attempt, "err", err)
		e.Kind = Failed
		e.Reason = fmt.Sprintf("This could not be started in %d attempts. The worker's log says why.", maxAttempts)
		e.Result = agent.Result{Outcome: agent.Failed, Error: agent.NewError(agent.ClassInternal, err.Error())}
	default:
		return Ending{}, err
	}
	return e, nil
}

// handBack returns an unfinished task to the fleet: without using an attempt when only this worker had to stop, at once, or when a better
// time was asked for; a run that failed as its class says; else after a while, as one attempt more.
func (w *Worker) handBack(run *run, cause error) error {
	var wait store.Wait
	later, asked := errors.AsType[*ErrLater](cause)
	failed, again := errors.AsType[*again](cause)
	switch {
	case again:
		wait = failed.Wait
	case asked: // by a source that is rate limited, or for the model's sake: it says when
		wait = store.Wait{At: later.At, Why: w.cfg.Policy.Redactor.String(later.Why)}
	case errors.Is(cause, errDrain), errors.Is(cause, errClaimLost):
		wait = store.Wait{Why: cause.Error()}
	default:
		wait = store.Wait{
			At: time.Now().Add(backoff(run.claim.Record().Attempt)), Counts: true, Why: "errand did not work; the worker's log says why",
		}
	}
	w.log.Warn("task handed back", "run", run.claim.ID(), "attempt", run.claim.Record().Attempt, "err", cause)
	run.told.leave() // before the next run of the task can begin
	_, err := w.persist(run, "return", func() error { return run.claim.Return(run.detached, wait) })
	if err != nil {
		return err
	}
	return &ErrLater{At: wait.At, Why: cause.Error()} // also when somebody else has it by now: the next delivery finds out
}

// unclaimed says what a delivery does that could not claim its task.
func (w *Worker) unclaimed(id string, err error) error {
	if due, ok := errors.AsType[*store.NotDue](err); ok {
		return &ErrLater{At: due.At, Why: err.Error()}
	}
	if full, ok := errors.AsType[*store.Full](err); ok {
		return later(busyWait, full.Error())
	}
	switch {
	case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrStale), errors.Is(err, store.ErrNotFound):
		return nil // nothing is left to do for this delivery
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrRunning):
		return later(busyWait, err.Error())
	}
	return fmt.Errorf("claim task %s: %w", id, err)
}
