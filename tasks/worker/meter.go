package worker

import (
	"errors"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Meter is told what a worker does with tasks, for its metrics. Its methods are called by many goroutines, and return at once.
type Meter interface {
	// Began tells of a task's first run, and how long the task had been due until a worker took it.
	Began(t tasks.Task, waited time.Duration)
	// Ran tells of a run that is over, whatever becomes of its task: what it came to and what it cost.
	Ran(t tasks.Task, r agent.Result)
	// Returned tells of a claimed task of that class that this worker does not end.
	Returned(class string, why Return)
	// Ended tells of a task whose final message is out, and how long after the ending. One worker of the fleet is told, once, however often it
	// was tried.
	Ended(t tasks.Task, e tasks.Ending, lag time.Duration)
}

// Return is why a worker did not end a task that it had claimed.
type Return string

// The reasons.
const (
	ReturnDrain  Return = "drain"      // the worker stops
	ReturnLost   Return = "claim_lost" // the claim was gone: somebody else has the task, or will
	ReturnWait   Return = "wait"       // it could not start just now, for the sake of a limit
	ReturnRetry  Return = "retry"      // its run failed in a way that may pass
	ReturnParked Return = "parked"     // likewise, and the model said when
	ReturnError  Return = "error"      // errand did not work
	ReturnCrash  Return = "crash"      // its worker died: this is told by the one that has found out
)

// unmetered is the meter of whoever has none.
type unmetered struct{}

func (unmetered) Began(tasks.Task, time.Duration)               {}
func (unmetered) Ran(tasks.Task, agent.Result)                  {}
func (unmetered) Returned(string, Return)                       {}
func (unmetered) Ended(tasks.Task, tasks.Ending, time.Duration) {}

// returnOf is why a task is handed back.
func returnOf(cause error) Return {
	failed, again := errors.AsType[*retryError](cause)
	_, asked := errors.AsType[*tasks.ErrLater](cause)
	switch {
	case again && failed.Parked:
		return ReturnParked
	case again:
		return ReturnRetry
	case asked:
		return ReturnWait
	case errors.Is(cause, errDrain):
		return ReturnDrain
	case errors.Is(cause, errClaimLost):
		return ReturnLost
	}
	return ReturnError
}

// began meters the start of a task's first run. One that goes on, or is tried again, has waited for other reasons as well.
func (w *Worker) began(r *run) {
	if rec := r.claim.Record(); rec.Attempt == 1 && rec.Delivery == 0 && !r.before.goesOn() && r.before.lost == "" {
		w.meter.Began(r.task, waited(rec))
	}
}

// waited is how long a claimed task had been due, by Redis' clock.
func waited(rec store.Record) time.Duration { return max(rec.Started.Sub(rec.Due()), 0) }
