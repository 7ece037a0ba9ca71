package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// What one run learns of the credential they all use holds for the fleet: a limit keeps every start back, an overload slows starts down.
// Runs under way are left alone: the CLI's own retries suit them. What passes only after horizon is no reason to hold the credential: each
// task then ends at once and says so, and the first one finds out if the account's plan was raised.

// admit lets a claimed task start unless its credential is held: then it waits, and the thread is told if that is for a limit.
func (w *Worker) admit(run *run, t tasks.Task, s tasks.Source) error {
	if w.cfg.Credential == "" {
		return nil
	}
	err := w.store.Credentials.Admit(run.ctx, w.cfg.Credential)
	held, ok := errors.AsType[*store.Held](err)
	if !ok {
		return err
	}
	wait := store.Wait{At: held.At.Add(turn(held.Interval, time.Since(run.claim.Record().Created))), Why: held.Why}
	if held.Why == "" {
		return tasks.Later(time.Until(wait.At), "runs start one after the other, because the model had too many requests")
	}
	w.sayOnce(run, t, s, fmt.Sprintf("held-%d", held.At.Unix()), parked(t, wait, time.Now()))
	return &tasks.ErrLater{At: wait.At, Why: wait.Why} // told just now
}

// turn is how long after the next start may be a task asks again: at any time of the interval, so that all who wait come one after the
// other, but the sooner the longer it has waited, so that it is not overtaken for ever by those who come new.
func turn(interval, waited time.Duration) time.Duration {
	if waited > 0 {
		interval = time.Duration(float64(interval) * float64(interval) / float64(interval+waited))
	}
	return upTo(interval)
}

// recordThrottle tells the fleet what the end of a run says of the credential.
func (w *Worker) recordThrottle(run *run, r agent.Result) {
	credential, err := w.cfg.Credential, error(nil)
	if credential == "" {
		return
	}
	lifted := w.lifted(r)
	switch {
	case !lifted.IsZero():
		err = w.store.Credentials.Hold(run.detached, credential, lifted, w.timing.Release, clause(r))
	case refused(r):
		err = w.store.Credentials.Refuse(run.detached, credential, clause(r))
	case r.Error != nil && throttles(r.Error.Class) && (r.API == nil || r.API.Throttled()):
		err = w.store.Credentials.Slow(run.detached, credential)
	case r.Outcome == agent.Done:
		err = w.store.Credentials.Ease(run.detached, credential)
	}
	if err != nil {
		w.log.Warn("tell the fleet of its credential", "run", run.claim.ID(), "err", err)
	}
}

// refused reports whether the model did not take the credential of a run, or wanted it paid for: by what the run's gateway saw, if it had one.
func refused(r agent.Result) bool {
	if r.Error == nil || r.Error.Class != agent.ClassAuth && r.Error.Class != agent.ClassBilling {
		return false
	}
	return r.API == nil || r.API.Refused() || r.Error.Class == agent.ClassBilling && r.API.Status == http.StatusBadRequest // "credit balance is too low"
}

// throttles reports whether a failure means that the model wants fewer requests.
func throttles(c agent.Class) bool { return c == agent.ClassOverloaded || c == agent.ClassRateLimit }

// slow makes what a live run calls when the model throttles it. The store is told by a goroutine that ends with the run's claim; what
// comes while it does so is the same news.
func (w *Worker) slow(run *run) func() {
	if w.cfg.Credential == "" {
		return func() {}
	}
	news := make(chan struct{}, 1)
	run.kept.Go(func() {
		for {
			select {
			case <-news:
			case <-run.life.Done():
				return
			}
			if err := w.store.Credentials.Slow(run.life, w.cfg.Credential); err != nil && run.life.Err() == nil {
				w.log.Warn("tell the fleet of its credential", "run", run.claim.ID(), "err", err)
			}
		}
	})
	return func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
}

// announce tells whoever follows the run that it is tried again, and the thread if that is long after.
func (w *Worker) announce(run *run, t tasks.Task, s tasks.Source, cause error) {
	a, ok := errors.AsType[*retryError](cause)
	if !ok {
		return
	}
	now := time.Now()
	if a.Parked {
		w.sayOnce(run, t, s, fmt.Sprintf("park-%d", run.claim.Record().Parks), parked(t, a.Wait, now))
		return
	}
	w.notice(run, fmt.Sprintf("This is tried again in %s, attempt %d of %d: %s.", span(a.At.Sub(now)), a.next, a.of, a.Why))
}

// parked says why and how long a task waits, and what can be done about it.
func parked(t tasks.Task, wait store.Wait, now time.Time) string {
	return fmt.Sprintf("This waits until %s: %s. What was done so far is kept, and it goes on by itself. To give it up instead, cancel it "+
		"in the console or with `enqueue cancel %s`.", moment(wait.At, now), wait.Why, t.ID)
}

// sayOnce says words of errand's own, in the task's thread too if the source talks, and only the first time that key comes up. Failing is
// no failure: the task's status says the same.
func (w *Worker) sayOnce(run *run, t tasks.Task, s tasks.Source, key, text string) {
	ctx, cancel := context.WithTimeout(run.detached, sayLimit)
	defer cancel()
	first, err := run.claim.First(ctx, key)
	if err == nil && first {
		w.notice(run, text)
		if to, ok := talker(s, t); ok {
			err = to.Say(ctx, t, text)
		}
	}
	if err != nil {
		w.log.Warn("say that the task waits", "run", t.ID, "thread", t.Thread, "err", err)
	}
}

// sayLimit bounds how long a task's thread is tried to be told.
const sayLimit = 15 * time.Second

// notice adds to a run's events what happens to its task outside of a run.
func (w *Worker) notice(run *run, text string) {
	e := agent.Event{Kind: agent.Notice, Text: text, Time: time.Now()}
	run.report.Update(e)
	if err := run.claim.Append(run.detached, format.JSON(e)); err != nil {
		w.log.Warn("store events", "run", run.claim.ID(), "err", err)
	}
}
