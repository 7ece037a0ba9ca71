package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/internal/jitter"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

// sourceWait is how long a task waits for a worker that is set up for its source, ± 50 %.
const sourceWait = 500 * time.Millisecond

// leaveToOthers leaves a delivery to a worker that is set up for the source of its task.
func (p *Processor) leaveToOthers(ctx context.Context, id string, delivery int, source string) error {
	rec, err := p.Store.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read task %s: %w", id, err)
	}
	if rec.State == store.Ended || rec.Delivery != delivery {
		return nil // nothing left to do for this delivery
	}
	why := "the worker that took it is not set up for " + source
	noted := p.Store.NoSlot(ctx, id, delivery, why)
	logline.Warn(p.Log, noted, "note why a task waits", "run", id)
	return tasks.Later(jitter.Around(sourceWait), why)
}

// unclaimed returns the result of a delivery that could not claim its task.
func unclaimed(id string, err error) error {
	if due, ok := errors.AsType[*store.NotDue](err); ok {
		return &tasks.ErrLater{At: due.At, Why: err.Error()}
	}
	if errors.Is(err, store.ErrEnded) || errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrNotFound) {
		return nil // nothing left to do for this delivery
	}
	if _, full := errors.AsType[*store.Full](err); full || errors.Is(err, store.ErrBusy) {
		return ErrReturned // the task gets another delivery when it can start
	}
	if errors.Is(err, store.ErrRunning) { // asynq gave the delivery of a run away, or its run has absorbed the task
		return ErrReturned
	}
	return fmt.Errorf("claim task %s: %w", id, err)
}
