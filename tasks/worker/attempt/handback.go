package attempt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/worker/hold"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/notices"
)

// ErrReturned is the result of a delivery whose task waits for another one.
var ErrReturned = errors.New("the task was returned")

// InfrastructureError is [ErrReturned] where errand's infrastructure failed, and says how.
type InfrastructureError struct{ Cause error }

func (e *InfrastructureError) Error() string   { return e.Cause.Error() }
func (e *InfrastructureError) Unwrap() []error { return []error{ErrReturned, e.Cause} }

// handBack returns an unfinished task to the fleet.
func (p *Processor) handBack(run *run, cause error) error {
	rec := run.Claim.Record()
	w := p.waitAfter(rec, cause)
	level := slog.LevelWarn
	if w.reason == ReturnWait {
		level = slog.LevelInfo // waiting is normal
	}
	p.Log.Log(run.Detached, level, "task handed back", "run", rec.ID, "attempt", rec.Attempt, "err", cause)
	p.Meter.Returned(rec.Class, w.reason)
	if w.message != "" {
		p.announce(run, w.key, w.message)
	}
	run.report.stop() // before the task's next run can start
	done, err := run.Persist("return", func() error { return run.Claim.Return(run.Detached, w.Wait) })
	if err != nil {
		return err
	}
	if !done {
		p.orphaned(run)
		p.deliver(run.Detached)
		return ErrReturned
	}

	rec.Delivery++
	if w.Tell != "" {
		p.Notices.Post(notices.Notice{ID: rec.ID, Delivery: rec.Delivery, Key: w.Tell})
	}
	p.deliver(run.Detached)
	if w.reason == ReturnError {
		return &InfrastructureError{cause}
	}
	return ErrReturned
}

// announce says in the events of a task why it waits for long, and in its thread if its source does not show that in
// the status, while the claim still protects it: after a death right here, the next run repeats nothing.
func (p *Processor) announce(run *run, key, text string) {
	e := agent.Event{Kind: agent.Notice, Text: text, Time: time.Now()}
	_, err := p.Notices.SayOnce(run.Detached, run.Claim.ID(), text, true, func(ctx context.Context) (bool, error) {
		first, err := run.Claim.First(ctx, key)
		if first {
			logline.Warn(p.Log, run.Claim.Append(ctx, format.JSON(e)), "store events", "run", run.Claim.ID())
		}
		return first, err
	})
	logline.Warn(p.Log, err, "say why a task waits", "run", run.Claim.ID())
}

// waiting is how an unfinished task waits.
type waiting struct {
	store.Wait

	reason  Return
	key     string // of the reason; "" if people are not told
	message string // for the thread instead of the notice, once for the key; "" for none
}

// waitAfter decides by its cause how an unfinished task waits, and removes secrets from what is said about it.
func (p *Processor) waitAfter(rec store.Record, cause error) waiting {
	w := waitAfter(rec, cause)
	w.Why = p.Policy.Redactor.String(w.Why)
	w.message = p.Policy.Redactor.String(w.message)
	w.Tell = p.Policy.Redactor.String(w.key)
	if w.key == outageKey { // the status shows each time until when it waits
		w.Tell = fmt.Sprintf("%s-%d", w.Tell, w.At.UnixMicro())
	}
	return w
}

// waitAfter decides by its cause how an unfinished task waits: a drain or a lost claim means at once and uncounted, an
// ErrLater and a retryError name the time, and any other error counts and backs off.
func waitAfter(rec store.Record, cause error) waiting {
	if failed, ok := errors.AsType[*retryError](cause); ok {
		return retryWait(failed)
	}
	if later, ok := errors.AsType[*tasks.ErrLater](cause); ok {
		// a rate-limited source or the credential's limit names the time
		w := waiting{Wait: store.Wait{At: later.At, Why: later.Why}, reason: ReturnWait, key: later.Tell}
		if _, held := errors.AsType[heldError](cause); held {
			w.message = whyPaused(w.Wait, w.key == outageKey)
		}
		return w
	}
	if errors.Is(cause, hold.ErrDrain) {
		return waiting{Wait: store.Wait{Why: cause.Error()}, reason: ReturnDrain}
	}
	if errors.Is(cause, hold.ErrClaimLost) {
		return waiting{Wait: store.Wait{Why: cause.Error()}, reason: ReturnLost}
	}
	return waiting{reason: ReturnError, Wait: store.Wait{
		At: time.Now().Add(queue.Backoff(rec.Attempt)), Counts: true,
		Why: "an internal error occurred; the worker's log has details",
	}}
}

// retryWait returns how a task waits whose run failed.
func retryWait(failed *retryError) waiting {
	if failed.Parked == "" {
		return waiting{Wait: failed.Wait, reason: ReturnRetry}
	}
	w := waiting{Wait: failed.Wait, reason: ReturnParked, key: outageKey}
	if failed.Parked != parkOutage {
		w.key = fmt.Sprintf("parked-%d", failed.At.UnixMicro())
	}
	w.message = whyPaused(w.Wait, failed.Parked == parkOutage)
	return w
}

// orphaned ends a task that no worker has: Redis lost it while it ran, and the thread's next task has started. If
// another worker has the task, End fails and that worker ends it.
func (p *Processor) orphaned(run *run) {
	e := tasks.Ending{
		Kind: tasks.Failed, At: time.Now(), Result: run.result,
		Reason: "The fleet's database lost this task while it ran, and this thread has continued " +
			"without it. The agent's work may be incomplete. Ask again.",
	}
	if err := run.Claim.End(run.Detached, e.Encode()); err == nil {
		p.Log.Warn("task ended: redis had lost it, and its thread has gone on", "run", run.Claim.ID(), "thread",
			run.Claim.Thread())
		p.Outbox.Post(run.Detached, run.Claim.ID(), nil)
	}
}
