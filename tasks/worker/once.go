package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
)

// The reasons why a worker that takes one task returns with an error from Run.
var (
	ErrUnable   = errors.New("this worker can run no task")
	ErrGaveBack = errors.New("errand's infrastructure failed, and the task was given back")
)

// once is the state of a worker that takes one task.
type once struct {
	idle    chan struct{} // has a value unless a delivery is being processed or the one task was claimed
	claimed atomic.Bool
	over    chan error // gets how the task was left
}

func newOnce() *once {
	o := &once{idle: make(chan struct{}, 1), over: make(chan error, 1)}
	o.idle <- struct{}{}
	return o
}

// mayProcess reports whether a delivery may be processed. A worker that takes one task processes one at a time, and
// processed must be called for it.
func (w *Worker) mayProcess() bool {
	if !w.cfg.Once {
		return true
	}
	select {
	case <-w.once.idle:
		return true
	default:
		return false
	}
}

// claimed notes that the one task has begun: the worker takes no further deliveries.
func (w *Worker) claimed() {
	if w.cfg.Once {
		w.once.claimed.Store(true)
		w.health.Nudge()
	}
}

// errPanicked is how a task was left that made the worker panic.
var errPanicked = errors.New("the worker panicked")

// process runs the task of a delivery, and notes how it was left.
func (w *Worker) process(ctx context.Context, class, id string, n int) (ending *tasks.Ending, err error) {
	err = errPanicked // asynq recovers
	defer func() { w.processed(err) }()
	return w.attempts.Process(ctx, class, id, n)
}

// processed notes that a delivery was processed. If its task was not claimed, the worker goes on waiting for one.
func (w *Worker) processed(err error) {
	if !w.cfg.Once {
		return
	}
	if !w.once.claimed.Load() {
		w.once.idle <- struct{}{}
		return
	}
	_, later := errors.AsType[*tasks.ErrLater](err)
	_, failed := errors.AsType[*attempt.InfrastructureError](err)
	if err == nil || later || errors.Is(err, attempt.ErrReturned) && !failed {
		w.once.over <- nil
	} else {
		w.once.over <- fmt.Errorf("%w: %s", ErrGaveBack, w.cfg.Policy.Redactor.String(err.Error()))
	}
}

// waited returns a channel that says that the worker has waited long enough; nil without a limit.
func (w *Worker) waited() <-chan time.Time {
	if !w.cfg.Once || w.cfg.Wait <= 0 {
		return nil
	}
	return time.After(w.cfg.Wait)
}

// unable returns a channel that says that the worker could run no task for too long, which is the given one if that
// still counts; nil if it can run tasks or has its one.
func (w *Worker) unable(before <-chan time.Time) <-chan time.Time {
	if !w.cfg.Once || w.once.claimed.Load() || w.health.State().OK {
		return nil
	}
	if before == nil {
		return time.After(w.cfg.Timing.Unable)
	}
	return before
}

// nothingCame returns the reason for which no task came; nil if there was none to take.
func (w *Worker) nothingCame() error {
	if h := w.health.State(); !h.OK {
		return fmt.Errorf("%w: %s", ErrUnable, h.Problem)
	}
	return nil
}
