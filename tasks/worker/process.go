// Package worker runs tasks. A [Worker] takes deliveries from the queues, claims the thread of each task, supervises
// one run of the agent, publishes its work, and stores and posts the ending. The file process.go has the whole flow;
// read it first. The other files have one step or one background loop each.
//
// The package promises:
//   - At most one live run per thread in the fleet, by the store's claims. asynq's lease and retries are not used for
//     this.
//   - When a delivery is given back to asynq, no process of its run is alive, and its ending is stored or nothing was
//     started.
//   - A final message that could not be posted is posted later by some worker, and a task whose worker died is run
//     again by another one, or ended after its third crash.
//   - A worker whose CLI cannot run tasks takes none, and reports that in its log, its health and its heartbeat.
//
// It does not promise at-most-once execution, nor that a run which is cut off from Redis stops at once: it may go on
// for up to a minute. The fence lets only one of two runs have effects. The package knows no product: sources and the
// publisher are interfaces.
//
// Call [New] once per process and [Worker.Run] once per worker; Run blocks until its context ends and the worker has
// shut down. [Worker.Health] and [Worker.Examine] are safe for concurrent use. Within the package, each delivery is
// processed by one goroutine, which owns the run's fields. The goroutine that reads the agent's output calls the host's
// methods, and these do not block. Each loop that Run starts has its own goroutine. A [Meter] is called from all of
// them.
package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/hold"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/tasks/worker/pools"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/workspace"
)

// process handles one delivery, from the queue to the answer. It returns nil if the delivery is done, a
// *tasks.ErrLater if the task has to wait, and any other error if errand's infrastructure failed. How the agent fared
// is in the task's ending, never in the error.
//
// When process returns, no process of the run is alive, and the ending is stored or nothing was started. The final
// message may not be posted yet. note is called with an ending that is stored.
func (w *Worker) process(ctx context.Context, class, id string, delivery int, note func(tasks.Ending)) error {
	if source := tasks.SourceOf(id); source != "" && !slices.Contains(w.tasks.Names(), source) {
		return w.leave(ctx, id, delivery, source)
	}
	slot, err := w.slots.Take(class)
	if err != nil {
		w.cfg.warn(w.cfg.Store.NoSlot(ctx, id, delivery, err.Error()), "note why a task waits", "run", id)
		if slot, err = w.slots.Await(w.drained, class); err != nil {
			return tasks.Later(0, err.Error())
		}
	}
	defer slot.Release()

	claim, err := w.cfg.Store.Claim(ctx, id, delivery, w.id, w.caps...)
	if err != nil {
		return unclaimed(id, err)
	}
	run := w.hold(ctx, claim, slot)
	posts := false // the poster ends the run
	defer func() {
		if !posts {
			run.leave()
		}
	}()

	ending, err := w.execute(run)
	if err != nil {
		return w.handBack(run, err)
	}
	stored, err := w.end(run, ending)
	if err != nil || !stored {
		return err
	}
	w.logEnd(run, ending)
	note(ending)
	w.cfg.deliver(run.Detached) // to those that waited for its places
	post := func() {
		w.outbox.Post(run.Detached, id, run.report.get())
	}
	// A source may make messages wait for many seconds. The slot is free meanwhile, and the thread is not.
	if posts = w.outbox.InBackground(func() { defer run.leave(); post() }); !posts {
		post()
	}
	return nil
}

// logEnd logs the ending of a run's task. The class of the error leads to docs/errors.md.
func (w *Worker) logEnd(r *run, e tasks.Ending) {
	args := []any{"outcome", string(e.Kind), "dur", e.Result.Duration.Round(time.Millisecond)}
	if e.Result.Error != nil {
		args = append(args, "err", string(e.Result.Error.Class))
	}
	r.logger(w).Info("task ended", args...)
}

// logger returns the worker's log with the attributes that identify a run.
func (r *run) logger(w *Worker) *slog.Logger {
	return w.cfg.Log.With("run", r.Claim.ID(), "thread", r.Claim.Thread(), "source", r.source,
		"attempt", r.Claim.Record().Attempt, "worker", w.id)
}

// The values that the steps of execute pass on.
type (
	// job is a decoded task with the source that it is from.
	job struct {
		task    tasks.Task
		source  tasks.Source
		maxUSD  float64 // its own maximum; budgets may leave less
		limited string  // why its run may only read, after "the person who asked"; empty: it may do what the task asks
		idle    bool    // a crash of the worker does not count against the task yet
	}
	// briefing is what the source tells the agent about a job.
	briefing struct {
		tasks.Brief
		files string // the thread's directory for files
	}
	// setting is where a run works and what it continues.
	setting struct {
		place        place.Place
		before       *resumeState
		conversation conversation
	}
)

// execute runs a claimed task to its ending. An error means that the task must be tried again, by this worker or
// another.
func (w *Worker) execute(r *run) (tasks.Ending, error) {
	j, err := w.accept(r) // decode the task
	if err == nil {
		err = w.recall(r, j) // look for an answer that was posted before Redis lost the ending
	}
	if err == nil {
		err = r.restrict(&j) // ask what its asker may do now
	}
	if err == nil {
		j.task.Options.MaxUSD, err = w.allow(r, j) // reserve its cost and check that a run can start now
	}
	if err != nil {
		return w.refused(r, err)
	}
	b, err := w.brief(r, j) // ask the source, which may refuse it
	if err != nil {
		return w.refused(r, err)
	}
	s, err := w.prepare(r, j, b) // open the report, prepare the directory, load the conversation
	if err != nil {
		return w.refused(r, err)
	}
	if err := w.setUp(r, j.task, &s.place); err != nil { // set up the repository's environment, or find it
		return w.refused(r, err)
	}
	spec, err := w.perform(r, j, b, s) // run the agent
	if err != nil {
		return w.refused(r, err)
	}
	ending, err := w.conclude(r, j) // decide how the task goes on
	switch {
	case err == nil:
		s.conversation.save(r, j.task, b.Brief)
		ending.Changed = w.changes.keep(r, s.place, b.Diff) // the next step makes the work a part of the history
		work := publish.Work{
			Hold: r.Hold, Task: j.task, Place: s.place, Result: r.result, Show: r.report.Update, Notice: r.notice,
		}
		var reached []string
		ending, reached = w.publisher.Publish(work, ending)
		w.publisher.ProposeEgress(work, append(r.reached, reached...))
	case !errors.Is(err, hold.ErrClaimLost): // another worker has the claim now and decides
		w.checkpoints.handOver(r, s.place, spec, err)
		// handBack informs about a parked task
		if failed, ok := errors.AsType[*retryError](err); ok && failed.Parked == "" {
			r.notice(failed.announcement())
		}
	}
	return ending, err
}

// accept decodes the task and hands it to another worker if it has crashed workers and cannot have this one to
// itself.
func (w *Worker) accept(r *run) (j job, err error) {
	j.task, j.source, err = w.tasks.Read(r.Claim.Record())
	j.maxUSD = j.task.Options.MaxUSD
	if r.source = j.task.Source; err != nil {
		return j, err
	}
	if pool := w.cfg.Policy.PoolOf(r.Claim.Record()); pool != w.cfg.Pool {
		return j, pools.Elsewhere(pool)
	}
	if r.mail, err = w.mailbox(r, j); err != nil {
		return j, err
	}
	if r.Ctx.Err() != nil {
		return j, r.Cause()
	}
	j.idle, err = w.isolation.accept(r)
	return j, err
}

// restrict limits the run to what the asker of its task may do now.
func (r *run) restrict(j *job) (err error) {
	j.task, j.limited, err = r.worker.briefs.permit(r.Ctx, j.task)
	r.mail.task.Profile = j.task.Profile
	return err
}

// allow reserves what the task may cost, and returns at what cost its run is stopped; 0 means no limit. It returns an
// error if no run can start now. Call it after every step that can find that no run is needed, because an admitted run
// delays others.
func (w *Worker) allow(r *run, j job) (maxUSD float64, err error) {
	if err := w.health.Problem(r.Ctx); err != nil {
		return 0, err
	}
	if err := w.isolation.isolate(r, j.idle); err != nil {
		return 0, err
	}
	if maxUSD, err = w.admission.afford(r, j.task); err != nil {
		return 0, err
	}
	// keep this last: a run that is admitted and does not start delays everyone else
	return maxUSD, w.admission.admit(r)
}

// brief asks the source for the prompt and its context. The source may refuse the task.
func (w *Worker) brief(r *run, j job) (b briefing, err error) {
	apart, err := w.cfg.Policy.Apart(r.Ctx, w.cfg.Store, j.task)
	switch {
	case err != nil:
	case apart: // earlier runs may have left files with what is in other repositories
		b.files, err = workspace.FilesApart(w.cfg.Workspace, j.task.Thread, format.Hash(j.task.Places()...))
	default:
		b.files, err = w.cfg.Workspace.Files(j.task.Thread)
	}
	if err != nil {
		return b, err
	}
	b.Brief, err = w.briefs.brief(r.Ctx, j.source, j.task, b.files)
	b.Fresh = b.Fresh || apart
	if j.limited != "" {
		b.System += "\n\nThe person who asked " + j.limited +
			". So you can read files and change nothing. If the request needs more, say so, and why."
	}
	return b, err
}

// prepare opens the report and loads what the run needs: its directory, the state to resume from and the
// conversation.
func (w *Worker) prepare(r *run, j job, b briefing) (s setting, err error) {
	r.report = r.openReport(j)
	if j.limited != "" {
		r.notice("The person who asked " + j.limited + ". So nothing can be changed.")
	}
	if s.before, err = w.checkpoints.load(r.Ctx, r.Claim.Record()); err != nil {
		return s, err
	}
	if s.place, err = w.placer.prepare(r.Ctx, j.task, b, s.before); err != nil {
		return s, err
	}
	for _, note := range s.place.Notes {
		r.notice(note)
	}
	if s.place.Lacking != "" {
		r.notice(s.place.Lacking)
	}
	if err := r.mail.resume(s.before); err != nil {
		return s, err
	}
	s.conversation, err = w.conversation(r.Ctx, j.task, b.Brief, s.before, r.mail.turns())
	r.repos = s.conversation.repos
	return s, err
}

// perform runs the agent. It sets the run's result, settles its cost, and returns the specification of the run.
func (w *Worker) perform(r *run, j job, b briefing, s setting) (agent.Spec, error) {
	given := newAnswers(s.before)
	host := &host{
		mailbox: r.mail, record: r.record(), report: r.report, given: given, slow: w.admission.throttleReporter(r),
	}
	host.talk = w.talk(r, j, host.emit)
	spec := w.spec(j.task, b.Brief, s)
	spec.Tools = host.talk.tools(s.place)
	w.checkpoints.schedule(r, s.place, given, &spec)
	r.mail.open(b, spec.Prompt.ID, host.record.add)
	r.slot.Begin()
	w.reportStart(r, j.task, s.before)
	r.logs.begin(w.cfg.LogDir, j.task.ID)
	r.logger(w).Info("run started")
	result, err := w.cfg.Runner.Run(r.Ctx, spec, host)
	r.logs.end()
	r.mail.close()
	host.record.close()
	result.Text = given.after(result.Text)
	result.Fresh = result.Fresh || s.conversation.lost
	r.reached = publish.Reached(r.reached, result.Egress)
	if len(r.reached) > 0 { // also in the set-up
		result.Egress = cmp.Or(result.Egress, &agent.EgressReport{Learn: true})
		result.Egress.Reached = r.reached
	}
	r.result, r.lines = result, b.Lines
	return spec, err
}

// conclude settles the run's cost and turns its result into the task's ending. It returns an error instead if the run
// was interrupted, with the cause, or if it failed and will be tried again, with the time.
func (w *Worker) conclude(r *run, j job) (e tasks.Ending, err error) {
	w.cfg.Meter.Ran(j.task, r.result)
	w.admission.recordThrottle(r)
	bill := w.admission.settle(r)
	if err := w.health.Blame(r.Detached, r.result.Error); err != nil {
		return e, err
	}
	next, given := w.cfg.Timing.retryDecision(r)
	if next != nil {
		w.admission.awaitModel(r, next)
		return e, next
	}
	e = tasks.Ending{Result: r.result, At: time.Now(), Bill: bill}
	switch r.result.Outcome {
	case agent.Done:
		e.Kind = tasks.Answered
	case agent.Failed:
		e.Kind, e.Reason = tasks.Failed, r.result.Error.User+given
		if r.result.Error.Class == agent.ClassBudget {
			b := w.cfg.Policy.Budgets
			e.Bill.UsedUp = b.OwnUsedUp(j.maxUSD, bill.Earlier, j.task.Options.MaxUSD)
			e.Reason = cmp.Or(b.Exhausted(j.maxUSD, bill.Earlier, j.task.Options.MaxUSD), e.Reason)
		}
	case agent.Limit:
		e.Kind, e.Limit = tasks.TimedOut, tasks.Lasted(j.task.Options.Limit)
	case agent.Stalled:
		e.Kind, e.Limit = tasks.Stalled, tasks.Lasted(w.cfg.IdleLimit)
	case agent.Stopped:
		by, ok := errors.AsType[tasks.Cancellation](r.Cause())
		if !ok {
			return tasks.Ending{}, r.Cause()
		}
		stopped := by.Ending()
		e.Kind, e.By, e.Reason = stopped.Kind, stopped.By, stopped.Reason
	}
	return e, nil
}
