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

// All runs share one credential, so the fleet shares what one run learns about it: a usage limit stops all starts, an
// overload slows them down. Live runs continue, because the CLI retries by itself. A limit that is lifted only after
// horizon does not stop other starts: each task then ends at once with that reason, and the first one finds out if
// the account's plan was upgraded.

// admit returns nil if a claimed task may start, and otherwise postpones it. If the reason is a usage limit, it
// informs the thread.
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
	return &tasks.ErrLater{At: wait.At, Why: wait.Why} // sayOnce has informed the thread
}

// turn returns how long after the next possible start a task tries again. It is a random part of the interval, so
// that the waiting tasks come one after the other. The longer a task has waited, the shorter the interval, so that
// newer tasks do not overtake it again and again.
func turn(interval, waited time.Duration) time.Duration {
	if waited > 0 {
		interval = time.Duration(float64(interval) * float64(interval) / float64(interval+waited))
	}
	return upTo(interval)
}

// recordThrottle records what the end of a run says about the credential, for the whole fleet.
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

// refused reports whether the model refused the credential or required payment, according to the run's gateway if it
// had one.
func refused(r agent.Result) bool {
	if r.Error == nil || r.Error.Class != agent.ClassAuth && r.Error.Class != agent.ClassBilling {
		return false
	}
	return r.API == nil || r.API.Refused() || r.Error.Class == agent.ClassBilling && r.API.Status == http.StatusBadRequest // "credit balance is too low"
}

// throttles reports whether a failure means that the model wants fewer requests.
func throttles(c agent.Class) bool { return c == agent.ClassOverloaded || c == agent.ClassRateLimit }

// slow returns the function that a live run calls when the model throttles it. A goroutine, which ends with the run's
// claim, informs the store; calls that come meanwhile count as one.
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

// announce tells the run's followers that the task will be retried, and the thread if that is much later.
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
	w.notice(run, fmt.Sprintf("Retrying in %s, attempt %d of %d: %s.", span(a.At.Sub(now)), a.next, a.of, a.Why))
}

// parked says why and until when a task waits, and how to cancel it.
func parked(t tasks.Task, wait store.Wait, now time.Time) string {
	return fmt.Sprintf("This waits until %s: %s. The work so far is kept, and it continues by itself. To stop it, cancel it "+
		"in the console or with `enqueue cancel %s`.", moment(wait.At, now), wait.Why, t.ID)
}

// sayOnce reports text in the run's events and, if the source can speak, in the thread. It does so only the first
// time for a key. Errors are only logged, because the task's status says the same.
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

// sayLimit bounds the time for informing a task's thread.
const sayLimit = 15 * time.Second

// notice adds an event to a run's events that says what happens to its task outside the run.
func (w *Worker) notice(run *run, text string) {
	e := agent.Event{Kind: agent.Notice, Text: text, Time: time.Now()}
	run.report.Update(e)
	if err := run.claim.Append(run.detached, format.JSON(e)); err != nil {
		w.log.Warn("store events", "run", run.claim.ID(), "err", err)
	}
}
