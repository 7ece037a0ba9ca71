package worker

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// process is the life of one delivery, from the queue to the posted answer. What it returns is for the queue: nil means that the
// delivery is done with, *ErrLater that the task waits, and any other error that errand itself did not work. How the agent fared
// is in the task's ending.
//
// When it returns, no process of the run is alive, and its ending is stored or nothing was started.
func (w *Worker) process(ctx context.Context, class, id string, delivery int) error {
	slot, err := w.slots.take(class)
	if err != nil {
		if noted := w.store.NoSlot(ctx, id, delivery, err.Error()); noted != nil {
			w.log.Warn("note why a task waits", "run", id, "err", noted)
		}
		return tasks.Later(slotWait, err.Error())
	}
	defer slot.release()

	claim, err := w.store.Claim(ctx, id, delivery, w.id, w.cfg.caps()...)
	if err != nil {
		return w.unclaimed(id, delivery, err)
	}
	run := w.hold(ctx, claim, slot)
	defer w.upload(run) // when the thread is free again: nobody waits for it
	defer run.release()

	ending, err := w.execute(run)
	if err != nil {
		return w.handBack(run, err)
	}
	stored, err := w.end(run, ending)
	if err != nil || !stored {
		return err
	}
	w.log.Info("task ended", "run", id, "thread", claim.Thread(), "source", run.task.Source, "attempt", claim.Record().Attempt,
		"outcome", string(ending.Kind), "dur", ending.Result.Duration.Round(time.Millisecond))
	w.post(run.detached, id, run.report.get())
	return nil
}

// execute does the work of a claimed task. An error means that it must be tried again, by this worker or another.
func (w *Worker) execute(r *run) (tasks.Ending, error) {
	for _, step := range []func(*run) error{
		w.accept,  // what it is
		w.recall,  // whether it has been answered already
		w.allow,   // what it may cost, and whether it may start just now
		w.brief,   // what its source says to it
		w.prepare, // its report, its directory, the conversation it goes on with
		w.perform, // the agent
	} {
		if err := step(r); err != nil {
			return w.refused(r, err)
		}
	}
	return w.finish(r)
}

// accept reads the task, and sends a suspect on that cannot start here now.
func (w *Worker) accept(r *run) (err error) {
	if r.task, r.source, err = w.read(r.claim.Record()); err != nil {
		return err
	}
	if repo, err := w.cfg.Policy.Allowed(r.task.Repo); err == nil { // it may be less than when the task was given
		r.task.Profile = repo.Narrow(r.task.Profile)
	}
	if r.mail, err = w.mailbox(r, r.task, r.source); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return r.cause()
	}
	return w.elsewhere(r)
}

// allow sets aside what the task may cost, and lets it wait or end where no run can start. It comes after whatever may find that none is to
// start: it puts off others.
func (w *Worker) allow(r *run) (err error) {
	if err := w.health.problem(r.ctx); err != nil {
		return err
	}
	if err := w.isolate(r); err != nil {
		return err
	}
	if r.task.Options.MaxUSD, err = w.afford(r, r.task); err != nil {
		return err
	}
	return w.admit(r, r.task, r.source) // last: who is admitted and does not start after all has put off all others
}

// brief asks the source, which may refuse the task.
func (w *Worker) brief(r *run) (err error) {
	if r.files, err = w.workspace.Files(r.task.Thread); err != nil {
		return err
	}
	r.words, err = w.briefed(r.ctx, r.source, r.task, r.files)
	return err
}

// prepare begins the report and makes ready what the run works in and goes on with.
func (w *Worker) prepare(r *run) (err error) {
	r.report = w.open(r, r.source, r.task)
	if r.before, err = w.loadResumeState(r.ctx, r.claim.Record()); err != nil {
		return err
	}
	if r.place, err = w.place(r.ctx, r.task, r.words, r.files, r.before); err != nil {
		return err
	}
	if err := r.mail.resume(r.before); err != nil {
		return err
	}
	r.talked, err = w.conversation(r.ctx, r.task, r.words, r.before, r.mail.said())
	return err
}

// perform runs the agent.
func (w *Worker) perform(r *run) (err error) {
	r.answers = newAnswers(r.before)
	host := &host{record: w.record(r), report: r.report, given: r.answers, mail: r.mail, slow: w.slow(r)}
	r.spec = w.spec(r.task, r.words, r.place, r.talked, r.before)
	host.talk = w.talk(r, r.task, r.source, host.record.add)
	r.spec.Tools = host.talk.tools(r.place)
	w.checkpoints(r, r.place, &r.spec)
	r.mail.open(r.words, r.files, r.spec.Prompt.ID, host.record.add)
	r.slot.begin()
	w.began(r)
	r.logs.begin(w.cfg.LogDir, r.task.ID)
	r.result, err = w.runner.Run(r.ctx, r.spec, host)
	r.logs.end()
	r.mail.close()
	host.record.close()
	r.result.Text = r.answers.after(r.result.Text)
	r.result.Fresh = r.result.Fresh || r.talked.lost
	return err
}

// finish settles what the run came to, and publishes the work of one that is over or keeps that of one that goes on.
func (w *Worker) finish(r *run) (tasks.Ending, error) {
	w.meter.Ran(r.task, r.result)
	w.recordThrottle(r, r.result)
	bill := w.settle(r, r.result)
	ending, err := w.conclude(r, r.task, r.result)
	ending.Bill = bill
	switch {
	case err == nil:
		r.talked.keep(r, w, r.task, r.words, r.result)
		w.publish(r, r.task, r.place, &ending)
	case !errors.Is(err, errClaimLost): // whoever has the claim now has the say
		w.handOver(r, r.place, r.spec, r.result, err)
		w.announce(r, r.task, r.source, err)
	}
	return ending, err
}

// conclude turns what a run came to into the task's ending. A run that was only interrupted has none: the error is what did it. Nor has one
// that failed and is tried again: the error says when.
func (w *Worker) conclude(run *run, t tasks.Task, r agent.Result) (tasks.Ending, error) {
	e := tasks.Ending{Result: r, At: time.Now()}
	if err := w.health.blame(run.detached, r.Error); err != nil {
		return tasks.Ending{}, err
	}
	next, given := w.retryDecision(run, r)
	if next != nil {
		return tasks.Ending{}, next
	}
	switch r.Outcome {
	case agent.Done:
		e.Kind = tasks.Answered
	case agent.Failed:
		e.Kind, e.Reason = tasks.Failed, r.Error.User+given
	case agent.Limit:
		e.Kind, e.Limit = tasks.TimedOut, tasks.Lasted(t.Options.Limit)
	case agent.Stalled:
		e.Kind, e.Limit = tasks.Stalled, tasks.Lasted(w.cfg.IdleLimit)
	case agent.Stopped:
		by, ok := errors.AsType[tasks.Cancellation](run.cause())
		if !ok {
			return tasks.Ending{}, run.cause()
		}
		stopped := by.Ending()
		e.Kind, e.By, e.Reason = stopped.Kind, stopped.By, stopped.Reason
	}
	return e, nil
}
