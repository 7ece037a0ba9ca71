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
	// horizon is how long a task waits for the model at most. Whoever asked should hear of a longer wait, and decide.
	horizon = 6 * time.Hour
	// maxParks bounds how often a task waits for a limit that is then reached again.
	maxParks = 5
	// muchLater makes of the wait before an overloaded model is asked again that for one that had too many requests.
	muchLater = 4
)

// retryError is the cause for which a task has no ending although its run failed: it is tried again.
type retryError struct {
	store.Wait      // its Why is a clause
	fresh      bool // in a new conversation
	next, of   int  // attempts
}

func (a *retryError) Error() string { return a.Why }

// retryDecision decides whether a task whose run failed is tried again, by the class of the failure (docs/errors.md). If not, given is what the
// ending says of that, beside the failure; it may be empty.
//
// A time that the model itself gave makes no attempt of the wait: the task is parked.
func (w *Worker) retryDecision(run *run, r agent.Result) (next *retryError, given string) {
	rec, how := run.claim.Record(), r.Retry()
	_, stopped := errors.AsType[tasks.Cancellation](run.cause())
	if stopped || how == agent.RetryNever { // what a person stopped is not begun again
		return nil, ""
	}
	now, tried := time.Now(), attempts(rec)
	a := &retryError{Wait: store.Wait{At: now, Why: clause(r), Counts: true}, next: tried + 1, of: maxAttempts}
	pause := w.timing.Again << (tried - 1)
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
	lifted := w.lifted(r)
	switch {
	case r.RetryAt.After(now.Add(horizon)):
		return nil, fmt.Sprintf(" It takes requests again at %s, which is too long to wait for.", moment(r.RetryAt, now))
	case !lifted.IsZero() && rec.Parks >= maxParks:
		return nil, fmt.Sprintf(" The task has waited for that %d times.", rec.Parks)
	case !lifted.IsZero():
		a.At, a.Counts, a.Parked = lifted.Add(upTo(2*w.timing.Reset)), false, true
	case tried >= a.of:
		return nil, fmt.Sprintf(" It was tried %d times.", tried)
	case r.RetryAt.After(a.At):
		a.At = r.RetryAt
	}
	return a, ""
}

// attempts is how often a claimed task was tried, this time included. A worker's death is not the run's failure; one that handed the run
// back just before may have been counted all the same.
func attempts(rec store.Record) int { return max(rec.Attempt-rec.Crashes, 1) }

// lifted is from when on the model takes requests again, where a run failed by a limit that is worth waiting for, and the model said when
// it is lifted; zero otherwise. It is a little later than it said: clocks differ.
func (w *Worker) lifted(r agent.Result) time.Time {
	how, now := r.Retry(), time.Now()
	limited := how == agent.RetryReset && !r.RetryAt.IsZero() || how == agent.RetryLater && r.RetryAt.After(now.Add(w.timing.Again))
	if !limited || r.RetryAt.After(now.Add(horizon)) {
		return time.Time{}
	}
	if r.RetryAt.Before(now) {
		return now.Add(w.timing.Reset)
	}
	return r.RetryAt.Add(w.timing.Reset)
}

// clause is why a run failed, as a part of a sentence.
func clause(r agent.Result) string {
	if r.Error == nil {
		return "the agent showed no sign of work"
	}
	first, _, _ := strings.Cut(r.Error.User, ". ")
	return strings.ToLower(first[:1]) + strings.TrimSuffix(first[1:], ".")
}

// moment is a time for readers anywhere, and how far off it is.
func moment(at, now time.Time) string {
	form := "15:04 UTC"
	if at.Sub(now) > 12*time.Hour {
		form = "15:04 UTC on 2 January"
	}
	return at.UTC().Format(form) + " (in " + span(at.Sub(now)) + ")"
}

// span is a duration in words, as exact as its length makes sensible.
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

// around is d, give or take half, so that what failed together does not come again together.
func around(d time.Duration) time.Duration { return d/2 + upTo(d) }

// upTo is any time from 0 to d.
func upTo(d time.Duration) time.Duration { return rand.N(max(d, 1)) } //nolint:gosec // no secret is made of it
