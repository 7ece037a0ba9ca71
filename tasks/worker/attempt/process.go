// Package attempt is what a worker does with one task, from its delivery to its ending. The file process.go has the
// whole flow; read it first. The other files have one step each.
//
// The package promises:
//   - At most one live run per thread in the fleet, by the store's claims. asynq's lease and retries are not used for
//     this.
//   - When [Processor.Process] returns, no process of the run is alive, and its ending is stored or nothing was
//     started.
//   - A run that is interrupted is continued by another one from its checkpoint.
//
// It does not promise at-most-once execution, nor that a run which is cut off from Redis stops at once: it may go on
// for up to a minute. The fence lets only one of two runs have effects. The package knows no product: sources and the
// forge are interfaces.
//
// Each delivery is processed by one goroutine, which owns the run's fields. The goroutine that reads the agent's output
// calls the host's methods, and these do not block.
package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/jitter"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/hold"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/workspace"
)

// Process handles one delivery, from the queue to the answer. It returns the ending that it has stored, whose final
// message may not be posted yet. Without one the delivery is done if the error is nil; the task has to wait after a
// *tasks.ErrLater, and its next delivery is arranged after [ErrReturned], which an [InfrastructureError] is too. This
// one and any other error mean that errand's infrastructure failed. How the agent fared is in the ending, never in the
// error.
//
// When Process returns, no process of the run is alive, and the ending is stored or nothing was started.
func (p *Processor) Process(ctx context.Context, class, id string, delivery int) (*tasks.Ending, error) {
	if source := tasks.SourceOf(id); source != "" && !slices.Contains(p.Sources.Names(), source) {
		return nil, p.leaveToOthers(ctx, id, delivery, source)
	}
	slot, err := p.takeSlot(ctx, class, id, delivery)
	if err != nil {
		return nil, err
	}
	defer slot.Release()

	claim, err := p.Store.Claim(ctx, id, delivery, p.Worker, p.Caps...)
	if err != nil {
		return nil, unclaimed(id, err)
	}
	if p.Claimed != nil {
		p.Claimed()
	}
	run := p.hold(ctx, claim, slot)
	ending, err := p.complete(run)
	if ending == nil {
		return nil, err
	}

	post := func() {
		defer p.close(run)
		p.Outbox.Post(run.Detached, id, run.report.get())
	}
	// A source may make messages wait for many seconds. The slot is free meanwhile, and the thread is not.
	if !p.Outbox.InBackground(post) {
		post()
	}
	return ending, nil
}

// takeSlot takes a slot for a class. If none is free, it gives the task another delivery, for a worker with room, and
// its turn again. It returns when this worker has room: what waits here occupies asynq's server, which takes no more.
func (p *Processor) takeSlot(ctx context.Context, class, id string, delivery int) (*machine.Slot, error) {
	slot, lacks := p.Slots.Take(class)
	if lacks == nil {
		return slot, nil
	}
	noted := p.Store.NoSlot(ctx, id, delivery, lacks.Error())
	logline.Warn(p.Log, noted, "note why a task waits", "run", id)
	if err := p.Queue.Replace(ctx, id, delivery); err != nil {
		return nil, fmt.Errorf("return task %s: %w", id, err)
	}
	p.deliver(ctx)
	err := p.Queue.ToFront(ctx, store.QueueOf(p.Pool, class), queue.DeliveryID(id, delivery+1))
	logline.Warn(p.Log, err, "put task first", "run", id)
	p.Slots.AwaitRoom(p.Drained, class)
	return nil, ErrReturned
}

// complete runs a claimed task and stores its ending. It returns nil if it has stored none; then the run is closed.
func (p *Processor) complete(run *run) (stored *tasks.Ending, err error) {
	defer func() {
		if stored == nil {
			p.close(run)
		}
	}()
	ending, err := p.execute(run)
	if err != nil {
		return nil, p.handBack(run, err)
	}
	ended, err := p.end(run, ending)
	if ended == nil {
		return nil, err
	}
	p.logEnd(run, *ended)
	p.deliver(run.Detached) // to those that waited for its places
	return ended, nil
}

// logEnd logs the ending of a run's task. The class of the error leads to docs/errors.md.
func (p *Processor) logEnd(r *run, e tasks.Ending) {
	args := []any{"outcome", string(e.Kind), "dur", e.Result.Duration.Round(time.Millisecond)}
	if e.Result.Error != nil {
		args = append(args, "err", string(e.Result.Error.Class))
	}
	p.logger(r).Info("task ended", args...)
}

// logger returns the log with the attributes that identify a run.
func (p *Processor) logger(r *run) *slog.Logger {
	id := r.Claim.ID()
	return p.Log.With("run", id, "thread", r.Claim.Thread(), "source", tasks.SourceOf(id),
		"attempt", r.Claim.Record().Attempt, "worker", p.Worker)
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
	// setting is what a run is told, where it works and what it continues.
	setting struct {
		briefing
		place        place.Place
		before       *resumeState
		conversation conversation
		reached      *agent.EgressReport // what its set-up has reached; nil: it has not run
	}
)

// execute runs a claimed task to its ending. An error means that the task must be tried again, by this worker or
// another.
func (p *Processor) execute(r *run) (tasks.Ending, error) {
	j, err := p.accept(r) // decode the task, and ask whether it may run now
	if err != nil {
		return p.refused(r, err)
	}
	b, err := p.brief(r, j) // ask the source, which may refuse it
	if err != nil {
		return p.refused(r, err)
	}
	s, err := p.prepare(r, j, b) // open the report, prepare the directory and its environment, load the conversation
	if err != nil {
		return p.refused(r, err)
	}
	spec, err := p.perform(r, j, s) // run the agent
	if err != nil {
		return p.refused(r, err)
	}
	ending, err := p.conclude(r, j, spec.Prompt.ID) // decide how the task goes on
	if err != nil {
		p.interrupt(r, s, spec, err) // save what another run continues
		return tasks.Ending{}, err
	}
	return p.publish(r, j, s, ending), nil // make the work public
}

// accept decodes the task, looks for an earlier answer, asks what its asker may do now, and reserves its cost. It hands
// the task to another worker if it has crashed workers and cannot have this one to itself.
func (p *Processor) accept(r *run) (job, error) {
	j, err := p.open(r)
	if err != nil {
		return job{}, err
	}
	if err := p.recall(r, j); err != nil { // Redis may have lost the ending
		return job{}, err
	}
	if r.Claim.Record().Crashes >= record.MaxCrashes { // it was delivered before the leader ended it
		return job{}, &overError{tasks.Ending{Kind: tasks.Lost, At: time.Now()}}
	}
	j.task, j.limited, err = p.briefs.permit(r.Ctx, j.task)
	if err != nil {
		return job{}, err
	}
	r.mail.task.Profile = j.task.Profile
	j.task.Options.MaxUSD, err = p.allow(r, j)
	return j, err
}

// poolWait is how long a task waits that has come to a worker of another pool, ± 50 %. Within that time the leader
// usually moves it.
const poolWait = 5 * time.Second

// open decodes the task and checks that this worker may try it.
func (p *Processor) open(r *run) (job, error) {
	rec := r.Claim.Record()
	task, source, err := p.Sources.Read(rec)
	if err != nil {
		return job{}, err
	}
	if pool := p.Policy.PoolOf(rec); pool != p.Pool {
		// The pool has changed since, and the leader moves the task, unless it still reads an older errand.yaml.
		return job{}, &tasks.ErrLater{
			At:  time.Now().Add(jitter.Around(poolWait)),
			Why: "it belongs to pool " + tasks.PoolName(pool),
		}
	}
	j := job{task: task, source: source, maxUSD: task.Options.MaxUSD}
	if r.mail, err = p.mailbox(r, j); err != nil {
		return job{}, err
	}
	if r.Ctx.Err() != nil {
		return job{}, r.Cause()
	}
	j.idle, err = p.isolation.accept(r)
	return j, err
}

// allow reserves what the task may cost, and returns at what cost its run is stopped; 0 means no limit. It returns an
// error if no run can start now. Call it after every step that can find that no run is needed, because an admitted run
// delays others.
func (p *Processor) allow(r *run, j job) (maxUSD float64, err error) {
	if err := p.Health.Problem(r.Ctx); err != nil {
		return 0, err
	}
	if err := p.isolation.isolate(r, j.idle); err != nil {
		return 0, err
	}
	maxUSD, err = p.admission.afford(r, j.task)
	if err != nil {
		return 0, err
	}
	// keep this last: a run that is admitted and does not start delays everyone else
	return maxUSD, p.admission.admit(r)
}

// brief asks the source for the prompt and its context. The source may refuse the task.
func (p *Processor) brief(r *run, j job) (briefing, error) {
	apart, err := p.Policy.Apart(r.Ctx, p.Store, j.task)
	if err != nil {
		return briefing{}, err
	}
	files, err := p.filesOf(j.task, apart)
	if err != nil {
		return briefing{}, err
	}
	brief, err := p.briefs.brief(r.Ctx, j.source, j.task, files)
	if err != nil {
		return briefing{}, err
	}
	brief.Fresh = brief.Fresh || apart
	if j.limited != "" {
		brief.System += "\n\nThe person who asked " + j.limited +
			". So you can read files and change nothing. If the request needs more, say so, and why."
	}
	return briefing{Brief: brief, files: files}, nil
}

// filesOf returns the thread's directory for files. A task that is kept apart has one of its own, because earlier runs
// may have left files with what is in other repositories.
func (p *Processor) filesOf(t tasks.Task, apart bool) (string, error) {
	if apart {
		return workspace.FilesApart(p.Workspace, t.Thread, format.Hash(t.Places()...))
	}
	return p.Workspace.Files(t.Thread)
}

// prepare opens the report and loads what the run needs: its directory, the state to resume from, the conversation and
// the environment of the repository.
func (p *Processor) prepare(r *run, j job, b briefing) (setting, error) {
	r.report = p.openReport(r, j)
	if j.limited != "" {
		p.notice(r, "The person who asked "+j.limited+". So nothing can be changed.")
	}
	before, err := p.checkpoints.load(r.Ctx, r.Claim.Record())
	if err != nil {
		return setting{}, err
	}
	where, err := p.placer.prepare(r.Ctx, j.task, b, before)
	if err != nil {
		return setting{}, err
	}
	if err := r.mail.resume(before); err != nil {
		return setting{}, err
	}
	continues, err := p.conversation(r.Ctx, j.task, b.Brief, before, r.mail.turns())
	if err != nil {
		return setting{}, err
	}
	where, err = where.StartIn(j.task, continues.began)
	if err != nil {
		return setting{}, err
	}
	for _, note := range where.Notes {
		p.notice(r, note)
	}
	if where.Lacking != "" {
		p.notice(r, where.Lacking)
	}
	where, reached, err := p.setUp(r, j.task, where)
	return setting{briefing: b, place: where, before: before, conversation: continues, reached: reached}, err
}

// perform runs the agent, and returns what it was told to do. It sets the run's result. An error means that nothing
// ran.
func (p *Processor) perform(r *run, j job, s setting) (agent.Spec, error) {
	given := newAnswers(s.before)
	host := &host{
		mailbox: r.mail, record: p.record(r), report: r.report, given: given, slow: p.admission.throttleReporter(r),
	}
	host.talk = p.talk(r, j, host.emit)
	spec := p.spec(j.task, s)
	spec.Tools = append(host.talk.tools(), p.attachments(r, j, s.place)...)
	spec.CheckpointEvery = p.Timing.Checkpoint
	spec.Checkpoint = p.checkpoints.during(r, s, spec.Prompt.ID, given)
	r.mail.open(s.briefing, spec.Prompt.ID, host.record.add)
	if list := chosen(s.place); len(list) > 0 { // for the page, which has the ending's later
		text := "Settings: " + strings.Join(list, ", ")
		host.record.add(agent.Event{Kind: agent.Notice, Text: text, Time: time.Now()})
	}
	r.slot.Begin()
	p.reportStart(r, j.task, s.before)
	r.logs.begin(p.LogDir, j.task.ID)
	p.logger(r).Info("run started")
	result, err := p.Runner.Run(r.Ctx, spec, host)
	r.mail.close()
	if err == nil {
		result = p.lookAgain(r, s, spec, host, result)
	}
	r.logs.end()
	host.record.close()
	result.Text = given.after(result.Text)
	result.Fresh = result.Fresh || s.conversation.lost
	result.Egress = publish.Reached(result.Egress, s.reached)
	r.result = result
	return spec, err
}

// conclude settles the run's cost and turns its result into the task's ending. It returns an error instead if the run
// was interrupted, with the cause, or if it failed and will be tried again, with the time.
func (p *Processor) conclude(r *run, j job, prompt string) (tasks.Ending, error) {
	p.Meter.Ran(j.task, r.result)
	p.admission.recordThrottle(r)
	bill := p.admission.settle(r)
	if err := p.Health.Blame(r.Detached, r.result.Error); err != nil {
		return tasks.Ending{}, err
	}
	next, given := p.Timing.retryDecision(r)
	if next != nil {
		p.admission.holdStarts(r, next)
		return tasks.Ending{}, next
	}
	e := tasks.Ending{Result: r.result, At: time.Now(), Bill: bill}
	switch r.result.Outcome {
	case agent.Done:
		e.Kind = tasks.Answered
	case agent.Failed:
		e.Kind, e.Reason = tasks.Failed, r.result.Error.User+given
		if r.result.Error.Class == agent.ClassBudget {
			limits := p.Policy.Budgets
			e.Bill.UsedUp = limits.OwnUsedUp(j.maxUSD, bill.Earlier, j.task.Options.MaxUSD)
			e.Reason = cmp.Or(limits.Exhausted(j.maxUSD, bill.Earlier, j.task.Options.MaxUSD), e.Reason)
		}
	case agent.Limit:
		e.Kind, e.Limit = tasks.TimedOut, tasks.Lasted(j.task.Options.Limit)
	case agent.Stalled:
		e.Kind, e.Limit = tasks.Stalled, tasks.Lasted(p.IdleLimit)
	case agent.Stopped:
		by, ok := errors.AsType[record.Cancellation](r.Cause())
		if !ok {
			return tasks.Ending{}, r.Cause()
		}
		if by.Cause == record.CauseTaken && !r.result.Session.Holds(prompt) {
			return tasks.Ending{}, errNotBegun
		}
		stopped := by.Ending()
		e.Kind, e.By, e.Reason = stopped.Kind, stopped.By, stopped.Reason
	}
	return e, nil
}

// interrupt saves the state of a run without an ending for the run that continues it, unless another worker has the
// claim and decides.
func (p *Processor) interrupt(r *run, s setting, spec agent.Spec, cause error) {
	if errors.Is(cause, hold.ErrClaimLost) {
		return
	}
	p.checkpoints.handOver(r, s, spec.Prompt.ID, cause)
	// handBack informs about a parked task
	if failed, ok := errors.AsType[*retryError](cause); ok && failed.Parked == "" {
		p.notice(r, failed.announcement())
	}
}

// publish saves the conversation for the thread's next task, and makes the run's work public. It returns the ending
// with what has become of the work.
func (p *Processor) publish(r *run, j job, s setting, e tasks.Ending) tasks.Ending {
	p.saveConversation(r, s.conversation, j.task, s)
	e.Settings = s.place.Settled.Settings
	e.Changed = p.changes.keep(r, s.place, s.Diff) // the next step makes the work a part of the history
	work := publish.Work{Hold: r.Hold, Task: j.task, Place: s.place, Result: r.result, Show: r.report.Update}
	return p.Publisher.Publish(work, e)
}
