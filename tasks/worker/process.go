// Package worker runs tasks. A [Worker] takes deliveries from the queues, claims the thread of each task, supervises one run of the
// agent, publishes its work, and stores and posts the ending. The file process.go has the whole flow; read it first. The other files
// have one step or one background loop each.
//
// The package promises:
//   - At most one live run per thread in the fleet, by the store's claims. asynq's lease and retries are not used for this.
//   - When a delivery is given back to asynq, no process of its run is alive, and its ending is stored or nothing was started.
//   - A final message that could not be posted is posted later by some worker, and a task whose worker died is run again by another
//     one, or ended after its third crash.
//   - A worker whose CLI cannot run tasks takes none, and reports that in its log, its health and its heartbeat.
//
// It does not promise at-most-once execution, nor that a run which is cut off from Redis stops at once: it may go on for up to a minute.
// The fence lets only one of two runs have effects. The package knows no product: sources and the publisher are interfaces.
//
// Call [New] once per process and [Worker.Run] once per worker; Run blocks until its context ends and the worker has shut down.
// [Worker.Health] and [Worker.Examine] are safe for concurrent use. Within the package, each delivery is processed by one goroutine, which
// owns the run's fields. The goroutine that reads the agent's output calls the host's methods, and these do not block. Each loop that Run
// starts has its own goroutine. A [Meter] is called from all of them.
package worker

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// process handles one delivery, from the queue to the posted answer. It returns nil if the delivery is done, a
// *tasks.ErrLater if the task has to wait, and any other error if errand's infrastructure failed. How the agent fared
// is in the task's ending, never in the error.
//
// When process returns, no process of the run is alive, and the ending is stored or nothing was started.
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
	defer w.upload(run) // runs last, so that the thread's next task does not wait for it
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

// execute runs a claimed task to its ending. An error means that the task must be tried again, by this worker or
// another.
func (w *Worker) execute(r *run) (tasks.Ending, error) {
	for _, step := range []func(*run) error{
		w.accept,  // decode the task
		w.recall,  // look for an answer that was posted before Redis lost the ending
		w.allow,   // reserve its cost and check that a run can start now
		w.brief,   // ask the source, which may refuse it
		w.prepare, // open the report, prepare the directory, load the conversation
		w.perform, // run the agent
	} {
		if err := step(r); err != nil {
			return w.refused(r, err)
		}
	}
	return w.finish(r)
}

// accept decodes the task and hands it to another worker if it has crashed workers and cannot have this one to
// itself.
func (w *Worker) accept(r *run) (err error) {
	if r.task, r.source, err = w.read(r.claim.Record()); err != nil {
		return err
	}
	if repo, err := w.cfg.Policy.Allowed(r.task.Repo); err == nil { // the policy may have become stricter since Submit
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

// allow reserves what the task may cost. It returns an error if no run can start now. Call it after every step that
// can find that no run is needed, because an admitted run delays others.
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
	return w.admit(r, r.task, r.source) // keep this last: a run that is admitted and does not start delays everyone else
}

// brief asks the source for the prompt and its context. The source may refuse the task.
func (w *Worker) brief(r *run) (err error) {
	if r.files, err = w.workspace.Files(r.task.Thread); err != nil {
		return err
	}
	r.words, err = w.briefed(r.ctx, r.source, r.task, r.files)
	return err
}

// prepare opens the report and loads what the run needs: its directory, the state to resume from and the
// conversation.
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

// perform runs the agent and collects its result.
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

// finish settles the run's cost and decides how the task goes on. If the task has ended, it publishes the work; if
// the run is to be resumed, it saves the state for the next worker.
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
	case !errors.Is(err, errClaimLost): // another worker has the claim now and decides
		w.handOver(r, r.place, r.spec, r.result, err)
		w.announce(r, r.task, r.source, err)
	}
	return ending, err
}

// conclude turns the result of a run into the task's ending. It returns an error instead if the run was interrupted,
// with the cause, or if it failed and will be tried again, with the time.
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
