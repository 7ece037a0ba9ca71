package attempt

import (
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/jitter"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

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
	wait := tasks.Lasted(max(time.Until(a.At), 0))
	return fmt.Sprintf("Retrying in %s, attempt %d of %d: %s.", wait, a.next, a.of, a.Why)
}

// retryDecision decides by the class of a failure whether the task is retried (docs/errors.md). If it is not, given
// is a sentence about that for the ending; it may be empty.
//
// If the model itself named a time, or could not be reached in any attempt, the wait does not count as an attempt: the
// task is parked.
func (t Timing) retryDecision(run *run) (next *retryError, given string) {
	r, rec := run.result, run.Claim.Record()
	how := r.Retry()
	if run.cancelled() || how == agent.RetryNever {
		return nil, "" // do not retry what a person stopped
	}
	now, tried := time.Now(), attempts(rec)
	a := t.retryByClass(r, rec, now)
	if how == agent.RetryContinue && !a.Counts {
		return a, ""
	}
	if r.RetryAt.After(now.Add(horizon)) {
		return nil, fmt.Sprintf(" It takes requests again at %s, which is too long to wait.", moment(r.RetryAt, now))
	}
	if elsewhere(r, now) { // the refused one is left out meanwhile
		a.At, a.Counts = now, now.Sub(requested(rec)) > horizon
		return a, ""
	}
	if lifted := t.lifted(r); !lifted.IsZero() {
		if lasts := lasting(rec, parkLimit, now); lasts >= horizon {
			waited := tasks.Lasted(lasts.Round(time.Minute))
			return nil, fmt.Sprintf(" The task has already waited for that for %s.", waited)
		}
		a.At, a.Counts, a.Parked = lifted.Add(jitter.UpTo(2*t.Reset)), false, parkLimit
		return a, ""
	}
	if tried < a.of {
		if r.RetryAt.After(a.At) {
			a.At = r.RetryAt
		}
		return a, ""
	}
	if !unreached(r) || lasting(rec, parkOutage, now) >= horizon {
		return nil, fmt.Sprintf(" It was tried %d times.", tried)
	}
	doublings := min(rec.Parks[parkOutage].Times, longestDoubling)
	pause := t.Again * time.Duration(min(outageWait<<doublings, longOutageWait))
	a.At, a.Counts, a.Parked = now.Add(pause), false, parkOutage
	return a, ""
}

// retryByClass returns how a failure is retried whose class says that it may be.
func (t Timing) retryByClass(r agent.Result, rec store.Record, now time.Time) *retryError {
	tried := attempts(rec)
	a := &retryError{Wait: store.Wait{At: now, Why: clause(r), Counts: true}, next: tried + 1, of: maxAttempts}
	pause := t.Again << (tried - 1)
	switch r.Retry() {
	case agent.RetryContinue: // the task itself did not fail; but it may be its tools that suspend the worker
		a.Counts = now.Sub(requested(rec)) > horizon
	case agent.RetryFresh:
		a.of, a.fresh = 2, true
	case agent.RetryResume:
		a.of = 2
	case agent.RetrySoon:
		a.At = now.Add(jitter.Around(pause))
	case agent.RetryLater, agent.RetryReset:
		a.At = now.Add(jitter.Around(pause * muchLater))
	}
	return a
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
