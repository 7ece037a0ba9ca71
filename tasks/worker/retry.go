package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

const (
	// horizon is the longest wait for the model. For a longer one the task ends, so that the asker can decide.
	horizon = 6 * time.Hour
	// maxParks bounds how often a task waits for a usage limit that is reached again afterwards.
	maxParks = 5
	// muchLater is the factor between the pause after an overload and the pause after a rate limit.
	muchLater = 4
)

// retryError is the cause of a task that has no ending although its run failed: it is retried.
type retryError struct {
	store.Wait      // Why is a clause
	fresh      bool // retry in a new conversation
	next, of   int  // number of the next attempt, and of all attempts
}

func (a *retryError) Error() string { return a.Why }

// retryDecision decides by the class of a failure whether the task is retried (docs/errors.md). If it is not, given
// is a sentence about that for the ending; it may be empty.
//
// If the model itself named a time, the wait does not count as an attempt: the task is parked.
func (t Timing) retryDecision(run *run) (next *retryError, given string) {
	r, rec := run.result, run.claim.Record()
	how := r.Retry()
	_, stopped := errors.AsType[tasks.Cancellation](run.cause())
	if stopped || how == agent.RetryNever { // do not retry what a person stopped
		return nil, ""
	}
	now, tried := time.Now(), attempts(rec)
	a := &retryError{Wait: store.Wait{At: now, Why: clause(r), Counts: true}, next: tried + 1, of: maxAttempts}
	pause := t.Again << (tried - 1)
	switch how {
	case agent.RetryFresh:
		a.of, a.fresh = 2, true
	case agent.RetryResume:
		a.of = 2
	case agent.RetrySoon:
		a.At = now.Add(around(pause))
	case agent.RetryLater, agent.RetryReset:
		a.At = now.Add(around(pause * muchLater))
	}
	lifted := t.lifted(r)
	switch {
	case r.RetryAt.After(now.Add(horizon)):
		return nil, fmt.Sprintf(" It takes requests again at %s, which is too long to wait.", moment(r.RetryAt, now))
	case !lifted.IsZero() && rec.Parks >= maxParks:
		return nil, fmt.Sprintf(" The task has already waited for that %d times.", rec.Parks)
	case !lifted.IsZero():
		a.At, a.Counts, a.Parked = lifted.Add(upTo(2*t.Reset)), false, true
	case tried >= a.of:
		return nil, fmt.Sprintf(" It was tried %d times.", tried)
	case r.RetryAt.After(a.At):
		a.At = r.RetryAt
	}
	return a, ""
}

// attempts returns how often a claimed task was tried, this time included. Crashes of workers do not count as
// attempts, but an attempt that was handed back just before a crash may count.
func attempts(rec store.Record) int { return max(rec.Attempt-rec.Crashes, 1) }

// lifted returns when a usage limit that failed the run is lifted, if the model said so and it is soon enough; zero
// otherwise. It adds a margin, because clocks differ.
func (t Timing) lifted(r agent.Result) time.Time {
	how, now := r.Retry(), time.Now()
	limited := how == agent.RetryReset && !r.RetryAt.IsZero() || how == agent.RetryLater && r.RetryAt.After(now.Add(t.Again))
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
	return strings.ToLower(first[:1]) + strings.TrimSuffix(first[1:], ".")
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

// around returns a random duration of d ± 50 %, so that tasks that failed together do not retry together.
func around(d time.Duration) time.Duration { return d/2 + upTo(d) }

// upTo returns a random duration from 0 to d.
func upTo(d time.Duration) time.Duration { return rand.N(max(d, 1)) } //nolint:gosec // not used for secrets
