package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/jitter"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/hold"
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/tasks/worker/notices"
	"github.com/errand-fleet/errand/tasks/worker/pools"
	"github.com/errand-fleet/errand/workspace"
)

// objectsWait is how long a task waits before it is tried again when the object store does not answer, ± 50 %.
const objectsWait = 20 * time.Second

// This file handles deliveries whose tasks did not run to an ending.

// refused handles an error from before the run. A cancel, an error that the person or an operator has to fix, and an
// error that occurred too often end the task. refused returns any other error, and the task is tried again.
func (w *Worker) refused(run *run, err error) (tasks.Ending, error) {
	if found, ok := errors.AsType[*alreadyAnswered](err); ok { // the task is over, whatever happened since
		return found.ending, nil
	}
	if by, ok := errors.AsType[tasks.Cancellation](run.Cause()); ok {
		return by.Ending(), nil
	}
	if run.Ctx.Err() != nil {
		return tasks.Ending{}, run.Cause()
	}
	e := tasks.Ending{Kind: tasks.Refused, At: time.Now()}
	err = tasks.FromForge(err) // the workspace asks it for a credential
	input, mistake := errors.AsType[*tasks.InputError](err)
	failure, failed := errors.AsType[*agent.Error](err)
	_, wait := errors.AsType[*tasks.ErrLater](err)
	switch {
	case wait:
		return tasks.Ending{}, err
	case errors.Is(err, store.ErrObjects): // what it continues from is there
		return tasks.Ending{}, tasks.Later(jitter.Around(objectsWait), "the store of saved sessions does not answer")
	}
	if err := w.health.Blame(run.Detached, failure); err != nil {
		return tasks.Ending{}, err
	}
	if !mistake {
		if err := w.blameMachine(run.Detached, run.Claim.Record(), err); err != nil {
			return tasks.Ending{}, err
		}
	}
	switch {
	case mistake:
		e.Reason = input.Sentence
	case failed && failure.Class != agent.ClassInternal && failure.Class.Retry() != agent.RetrySoon:
		e.Kind, e.Reason = tasks.Failed, failure.User
		e.Result = agent.Result{Outcome: agent.Failed, Error: failure}
	case workspace.Lasting(err):
		e.Reason = "The repository could not be prepared: " + err.Error() + "."
	case attempts(run.Claim.Record()) >= maxAttempts:
		w.cfg.Log.Error("task failed", "run", run.Claim.ID(), "attempt", run.Claim.Record().Attempt, "err", err)
		e.Kind = tasks.Failed
		e.Reason = fmt.Sprintf("This could not be started in %d attempts. The worker's log has details.", maxAttempts)
		if why := workspace.Explain(err); why != "" {
			e.Reason = fmt.Sprintf("The repository could not be prepared in %d attempts: %s.", maxAttempts, why)
		}
		e.Result = agent.Result{Outcome: agent.Failed, Error: agent.NewError(agent.ClassInternal, err.Error())}
	default:
		return tasks.Ending{}, err
	}
	return e, nil
}

// localWait is how long a task waits for another worker after a failure of one worker's machine, ± 50 %.
const localWait = 20 * time.Second

// blameMachine hands back a task whose preparation failed if the worker's machine is the cause, by a check or by the
// error itself: a part of the disk may be damaged that no check uses. Such an error counts like any other after
// horizon, so that the task does not wait for ever.
func (w *Worker) blameMachine(ctx context.Context, rec store.Record, cause error) error {
	if err := w.health.BlameDisks(ctx); err != nil {
		return err
	}
	if machine.LocalFault(cause) && time.Since(requested(rec)) < horizon {
		w.cfg.Log.Error("task hit a fault of this machine and is handed back", "run", rec.ID, "err", cause)
		return tasks.Later(jitter.Around(localWait), "the machine of the worker that took it has a fault")
	}
	return nil
}

// errReturned is the result of a delivery whose task waits for another one.
var errReturned = errors.New("the task was returned")

// handBack returns an unfinished task to the fleet.
func (w *Worker) handBack(run *run, cause error) error {
	rec := run.Claim.Record()
	wait, why, note, message := w.waitAfter(rec, cause)
	level := slog.LevelWarn
	if why == ReturnWait {
		level = slog.LevelInfo // waiting is normal
	}
	w.cfg.Log.Log(run.Detached, level, "task handed back", "run", rec.ID, "attempt", rec.Attempt, "err", cause)
	w.cfg.Meter.Returned(rec.Class, why)
	if message != "" {
		w.announce(run, note.Key, message)
	}
	run.report.leave() // before the task's next run can start
	done, err := run.Persist("return", func() error { return run.Claim.Return(run.Detached, wait) })
	if err != nil {
		return err
	}
	if _, moves := errors.AsType[pools.ElsewhereError](cause); moves && done {
		rec.Delivery++
		w.cfg.warn(w.pools.Move(run.Detached, rec), "move task to another pool", "run", rec.ID)
	}
	if !done {
		w.orphaned(run)
	} else if note.Key != "" {
		note.Said = message != ""
		w.waits.Post(note)
	}
	w.cfg.deliver(run.Detached)
	return errReturned
}

// announce says in the events and in the thread of a task why it waits for long, while the claim still protects it:
// after a death right here, the next run repeats nothing.
func (w *Worker) announce(run *run, key, text string) {
	e := agent.Event{Kind: agent.Notice, Text: text, Time: time.Now()}
	w.waits.SayOnce(run.Detached, run.Claim.ID(), text, func(ctx context.Context) (bool, error) {
		first, err := run.Claim.First(ctx, key)
		if first {
			w.cfg.warn(run.Claim.Append(ctx, format.JSON(e)), "store events", "run", run.Claim.ID())
		}
		return first, err
	})
}

// waitAfter decides by its cause how an unfinished task waits: a drain or a lost claim means at once and uncounted, an
// ErrLater and a retryError name the time, and any other error counts and backs off. The notice has a key if the
// task's status should show it. A message is for the thread instead, once for the notice's key.
func (w *Worker) waitAfter(rec store.Record, cause error) (
	wait store.Wait, why Return, note notices.Notice, message string,
) {
	note = notices.Notice{ID: rec.ID, Delivery: rec.Delivery + 1}
	later, asked := errors.AsType[*tasks.ErrLater](cause)
	failed, again := errors.AsType[*retryError](cause)
	switch {
	case again && failed.Parked == parkOutage:
		wait, why = failed.Wait, ReturnParked
		note.Key, message = outageKey, outlasting(rec.ID, wait)
	case again && failed.Parked != "":
		wait, why = failed.Wait, ReturnParked
		note.Key, message = fmt.Sprintf("parked-%d", wait.At.UnixMicro()), parked(rec.ID, wait)
	case again:
		wait, why = failed.Wait, ReturnRetry
	case asked: // a rate-limited source or the credential's limit names the time
		wait, why = store.Wait{At: later.At, Why: later.Why}, ReturnWait
		note.Key = later.Tell
		if _, held := errors.AsType[heldError](cause); held && note.Key == outageKey {
			message = outlasting(rec.ID, wait)
		} else if held {
			message = parked(rec.ID, wait)
		}
	case errors.Is(cause, hold.ErrDrain):
		wait, why = store.Wait{Why: cause.Error()}, ReturnDrain
	case errors.Is(cause, hold.ErrClaimLost):
		wait, why = store.Wait{Why: cause.Error()}, ReturnLost
	default:
		wait.At, wait.Counts, why = time.Now().Add(tasks.Backoff(rec.Attempt)), true, ReturnError
		wait.Why = "an internal error occurred; the worker's log has details"
	}
	wait.Why = w.cfg.Policy.Redactor.String(wait.Why)
	note.Why = wait.Why
	return wait, why, note, w.cfg.Policy.Redactor.String(message)
}

// orphaned ends a task that no worker has: Redis lost it while it ran, and the thread's next task has started. If
// another worker has the task, End fails and that worker ends it.
func (w *Worker) orphaned(run *run) {
	e := tasks.Ending{
		Kind: tasks.Failed, At: time.Now(), Result: run.result,
		Reason: "The fleet's database lost this task while it ran, and this thread has continued " +
			"without it. The agent's work may be incomplete. Ask again.",
	}
	if err := run.Claim.End(run.Detached, e.Encode()); err == nil {
		w.cfg.Log.Warn("task ended: redis had lost it, and its thread has gone on", "run", run.Claim.ID(), "thread",
			run.Claim.Thread())
		w.outbox.Post(run.Detached, run.Claim.ID(), nil)
	}
}

// leave leaves a delivery to a worker that is set up for the source of its task.
func (w *Worker) leave(ctx context.Context, id string, delivery int, source string) error {
	rec, err := w.cfg.Store.Get(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read task %s: %w", id, err)
	case rec.State == store.Ended || rec.Delivery != delivery:
		return nil // nothing left to do for this delivery
	}
	why := "the worker that took it is not set up for " + source
	w.cfg.warn(w.cfg.Store.NoSlot(ctx, id, delivery, why), "note why a task waits", "run", id)
	return tasks.Later(jitter.Around(sourceWait), why)
}

// unclaimed returns the result of a delivery that could not claim its task.
func unclaimed(id string, err error) error {
	if due, ok := errors.AsType[*store.NotDue](err); ok {
		return &tasks.ErrLater{At: due.At, Why: err.Error()}
	}
	_, full := errors.AsType[*store.Full](err)
	switch {
	case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrStale), errors.Is(err, store.ErrNotFound):
		return nil // nothing left to do for this delivery
	case full, errors.Is(err, store.ErrBusy): // the task gets another delivery when it can start
		return errReturned
	case errors.Is(err, store.ErrRunning): // asynq gave the delivery of a run away, or its run has absorbed the task
		return errReturned
	}
	return fmt.Errorf("claim task %s: %w", id, err)
}

// Redis may come back without its last second (appendfsync everysec, a replica that took over) or from a backup, and
// may then have lost a task's ending, so that the task looks like one whose worker died. The thread still has the final
// message. So recall asks the source for it before a task is run again.

// recallLimit and recallTries bound the search for an earlier final message.
const (
	recallLimit = 30 * time.Second
	recallTries = 3
	recallPause = 500 * time.Millisecond
)

// alreadyAnswered is the cause of a task that does not run again because its final message is posted.
type alreadyAnswered struct{ ending tasks.Ending }

func (*alreadyAnswered) Error() string { return "the final message is in the thread already" }

// recall looks in the thread for the final message of a task that has, or may have, started before. If the source is
// rate limited, the task waits, because otherwise the work would be done twice. After any other error the task runs,
// and the report looks again before it posts.
func (w *Worker) recall(r *run, j job) error {
	rec := r.Claim.Record()
	source, ok := j.source.(tasks.Recaller)
	if !ok || rec.Attempt <= 1 && rec.Crashes == 0 && !rec.Doubt {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Ctx, recallLimit)
	defer cancel()
	e, err := source.Final(ctx, j.task, rec.Retried)
	for try := 1; err != nil; try++ {
		if wait, ok := errors.AsType[*tasks.ErrLater](err); ok {
			return wait
		}
		if try == recallTries || ctx.Err() != nil {
			break
		}
		select {
		case <-time.After(time.Duration(try) * recallPause):
		case <-ctx.Done():
		}
		e, err = source.Final(ctx, j.task, rec.Retried)
	}
	if err != nil && r.Ctx.Err() == nil {
		w.cfg.Log.Warn("look for an earlier final message", "run", j.task.ID, "thread", j.task.Thread, "err", err)
	}
	if err != nil || e == nil {
		return nil
	}
	w.cfg.Log.Warn("task was answered before, and Redis has forgotten it", "run", j.task.ID, "thread",
		j.task.Thread, "ended", e.At)
	e.Found = true
	if e.Kind == tasks.Answered {
		e.Reason = "This was answered before, and the record was lost. The answer is in the thread."
	} else {
		e.Reason = "This ended before, and the record was lost. The thread says how."
	}
	return &alreadyAnswered{ending: *e}
}

// endCovered ends the waiting tasks that a found message has answered as well.
func (w *Worker) endCovered(r *run, e tasks.Ending) {
	for _, id := range e.Covers {
		own := tasks.Ending{Kind: e.Kind, At: e.At, Found: true, Reason: "This was answered together with task " +
			r.Claim.ID() + "."}
		_, err := tasks.EndWaiting(r.Detached, w.cfg.Store, id, own)
		w.cfg.warn(err, "end task", "run", id)
	}
}

const (
	// horizon is the longest wait for the model. For a longer one the task ends, so that the asker can decide.
	horizon = 6 * time.Hour
	// longestDoubling is the last park for an outage whose pause is twice the one before.
	longestDoubling = 5
	// muchLater is the factor between the pause after an overload and the pause after a rate limit.
	muchLater = 4
	// outageWait and longOutageWait times Timing.Again are the first and the longest pause between two tries of a model
	// that cannot be reached: 2 min and 16 min.
	outageWait     = 4
	longOutageWait = 32
	// outageKey is the key of what a thread is told about an outage: once, however often the model is tried.
	outageKey = "outage"
)

// What a task is parked for. It is given up for a cause that has lasted for horizon; the other causes do not count.
const (
	parkLimit  = "limit"  // a usage limit
	parkOutage = "outage" // the model cannot be reached
)

// retryError is the cause of a task that has no ending although its run failed: it is retried.
type retryError struct {
	store.Wait      // Why is a clause
	fresh      bool // retry in a new conversation
	next, of   int  // number of the next attempt, and of all attempts
}

func (a *retryError) Error() string { return a.Why }

// announcement tells the followers of a failed run that its task is tried again.
func (a *retryError) announcement() string {
	if !a.Counts {
		return fmt.Sprintf("Continuing: %s.", a.Why)
	}
	return fmt.Sprintf("Retrying in %s, attempt %d of %d: %s.", span(time.Until(a.At)), a.next, a.of, a.Why)
}

// retryDecision decides by the class of a failure whether the task is retried (docs/errors.md). If it is not, given
// is a sentence about that for the ending; it may be empty.
//
// If the model itself named a time, or could not be reached in any attempt, the wait does not count as an attempt: the
// task is parked.
func (t Timing) retryDecision(run *run) (next *retryError, given string) {
	r, rec := run.result, run.Claim.Record()
	how := r.Retry()
	_, stopped := errors.AsType[tasks.Cancellation](run.Cause())
	if stopped || how == agent.RetryNever { // do not retry what a person stopped
		return nil, ""
	}
	now, tried := time.Now(), attempts(rec)
	a := &retryError{Wait: store.Wait{At: now, Why: clause(r), Counts: true}, next: tried + 1, of: maxAttempts}
	pause := t.Again << (tried - 1)
	switch how {
	case agent.RetryContinue: // the task itself did not fail; but it may be its tools that suspend the worker
		a.Counts = now.Sub(requested(rec)) > horizon
		if !a.Counts {
			return a, ""
		}
	case agent.RetryFresh:
		a.of, a.fresh = 2, true
	case agent.RetryResume:
		a.of = 2
	case agent.RetrySoon:
		a.At = now.Add(jitter.Around(pause))
	case agent.RetryLater, agent.RetryReset:
		a.At = now.Add(jitter.Around(pause * muchLater))
	}
	lifted := t.lifted(r)
	switch {
	case r.RetryAt.After(now.Add(horizon)):
		return nil, fmt.Sprintf(" It takes requests again at %s, which is too long to wait.", moment(r.RetryAt, now))
	case elsewhere(r, now): // the refused one is left out meanwhile
		a.At, a.Counts = now, now.Sub(requested(rec)) > horizon
	case !lifted.IsZero():
		if lasts := lasting(rec, parkLimit, now); lasts >= horizon {
			return nil, fmt.Sprintf(" The task has already waited for that for %s.", span(lasts))
		}
		a.At, a.Counts, a.Parked = lifted.Add(jitter.UpTo(2*t.Reset)), false, parkLimit
	case tried >= a.of && unreached(r) && lasting(rec, parkOutage, now) < horizon:
		doublings := min(rec.Parks[parkOutage].Times, longestDoubling)
		pause := t.Again * time.Duration(min(outageWait<<doublings, longOutageWait))
		a.At, a.Counts, a.Parked = now.Add(pause), false, parkOutage
	case tried >= a.of:
		return nil, fmt.Sprintf(" It was tried %d times.", tried)
	case r.RetryAt.After(a.At):
		a.At = r.RetryAt
	}
	return a, ""
}

// elsewhere reports whether another credential is free to serve a run that the model has refused.
func elsewhere(r agent.Result, now time.Time) bool {
	return r.API != nil && !r.RetryAt.IsZero() && r.RetryAt.Equal(r.API.FreeAt) && !r.RetryAt.After(now)
}

// unreached reports whether a run failed because the model could not be reached.
func unreached(r agent.Result) bool { return r.Error != nil && r.Error.Class == agent.ClassOverloaded }

// lasting returns for how long a task has been parked for a cause again and again.
func lasting(rec store.Record, cause string, now time.Time) time.Duration {
	first := rec.Parks[cause].First
	if first.IsZero() {
		return 0
	}
	return now.Sub(first)
}

// requested returns when the person asked for a task, or for its retry.
func requested(rec store.Record) time.Time {
	if rec.Retried.After(rec.Created) {
		return rec.Retried
	}
	return rec.Created
}

// attempts returns how often a claimed task was tried, this time included. Crashes of workers do not count as
// attempts, but an attempt that was handed back just before a crash may count.
func attempts(rec store.Record) int { return max(rec.Attempt-rec.Crashes, 1) }

// lifted returns when a usage limit that failed the run is lifted, if the model said so and it is soon enough; zero
// otherwise. It adds a margin, because clocks differ.
func (t Timing) lifted(r agent.Result) time.Time {
	how, now := r.Retry(), time.Now()
	limited := how == agent.RetryReset && !r.RetryAt.IsZero() ||
		how == agent.RetryLater && r.RetryAt.After(now.Add(t.Again))
	if !limited || r.RetryAt.After(now.Add(horizon)) {
		return time.Time{}
	}
	if r.RetryAt.Before(now) {
		return now.Add(t.Reset)
	}
	return r.RetryAt.Add(t.Reset)
}

// clause returns why a run failed, as a clause.
func clause(r agent.Result) string {
	if r.Error == nil {
		return "the agent showed no sign of work"
	}
	first, _, _ := strings.Cut(r.Error.User, ". ")
	if first == "" {
		return "the agent failed (" + string(r.Error.Class) + ")"
	}
	letter, size := utf8.DecodeRuneInString(first)
	return string(unicode.ToLower(letter)) + strings.TrimSuffix(first[size:], ".")
}

// parked says why and until when a task waits, and how to cancel it.
func parked(id string, wait store.Wait) string {
	return fmt.Sprintf("Paused until %s: %s. The work so far is kept, and the task continues by itself. %s",
		moment(wait.At, time.Now()), wait.Why, notices.HowToCancel(id))
}

// outlasting says that a task waits for the model, which may take several tries.
func outlasting(id string, wait store.Wait) string {
	return fmt.Sprintf("Paused: %s. The work so far is kept, and the task continues by itself as soon as the model "+
		"answers again, for up to %d hours. %s", wait.Why, int(horizon.Hours()), notices.HowToCancel(id))
}

// moment formats a time in UTC and how far away it is.
func moment(at, now time.Time) string {
	form := "15:04 UTC"
	if at.Sub(now) > 12*time.Hour {
		form = "15:04 UTC on 2 January"
	}
	return at.UTC().Format(form) + " (in " + span(at.Sub(now)) + ")"
}

// span formats a duration with a sensible precision.
func span(d time.Duration) string {
	switch s, m := int(d.Seconds()), int(d.Round(time.Minute).Minutes()); {
	case s < 90:
		return fmt.Sprintf("%d s", max(s, 0))
	case m < 120:
		return fmt.Sprintf("%d min", m)
	case m < 48*60:
		return fmt.Sprintf("%d h %d min", m/60, m%60)
	default:
		return fmt.Sprintf("%d days", m/60/24)
	}
}
