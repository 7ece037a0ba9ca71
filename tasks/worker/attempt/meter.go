package attempt

import (
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Meter receives what becomes of attempts, for metrics. Its methods are called from many goroutines and must not
// block.
type Meter interface {
	// Began reports a task's first run, and how long the task had been due before a worker took it.
	Began(t tasks.Task, waited time.Duration)
	// Ran reports the result and cost of a run that is over, even if its task continues.
	Ran(t tasks.Task, r agent.Result)
	// Returned reports a claimed task of a class that this worker did not end.
	Returned(class string, why Return)
}

// Return is why a worker did not end a task that it had claimed.
type Return string

// The reasons.
const (
	ReturnDrain  Return = "drain"      // the worker shuts down
	ReturnLost   Return = "claim_lost" // the claim was lost to another worker
	ReturnWait   Return = "wait"       // a limit kept it from starting
	ReturnRetry  Return = "retry"      // its run failed and will be retried
	ReturnParked Return = "parked"     // its run failed, and the model said when to retry
	ReturnError  Return = "error"      // an internal error
	ReturnCrash  Return = "crash"      // its worker died; reported by the worker that detected it
)

// reportStart reports the start of a task's first run. It skips resumed and retried tasks, which have waited for other
// reasons as well.
func (p *Processor) reportStart(r *run, t tasks.Task, before *resumeState) {
	rec := r.Claim.Record()
	first := rec.Attempt == 1 && rec.Crashes == 0 && rec.Retried.IsZero()
	if first && !before.goesOn() && before.lost == "" {
		p.Meter.Began(t, waited(rec))
	}
}

// waited returns how long a claimed task had been due, by Redis' clock.
func waited(rec store.Record) time.Duration { return max(rec.Started.Sub(rec.Due()), 0) }
