package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/jitter"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/workspace"
)

// objectsWait is how long a task waits before it is tried again when the object store does not answer, ± 50 %.
const objectsWait = 20 * time.Second

// errNotBegun returns a task to be taken over whose agent has not begun: what it would continue is in a checkpoint,
// which the ending would remove.
var errNotBegun = &tasks.ErrLater{Why: "it was to be taken over before its agent had begun"}

// refused handles an error from before the run. A cancel, an error that the person or an operator has to fix, and an
// error that occurred too often end the task. refused returns any other error, and the task is tried again.
func (p *Processor) refused(run *run, err error) (tasks.Ending, error) {
	if found, ok := errors.AsType[*overError](err); ok { // the task is over, whatever happened since
		return found.ending, nil
	}
	if by, ok := errors.AsType[record.Cancellation](run.Cause()); ok {
		if by.Cause == record.CauseTaken {
			return tasks.Ending{}, errNotBegun
		}
		return by.Ending(), nil
	}
	if run.Ctx.Err() != nil {
		return tasks.Ending{}, run.Cause()
	}
	err = tasks.FromForge(err) // the workspace asks it for a credential
	if _, wait := errors.AsType[*tasks.ErrLater](err); wait {
		return tasks.Ending{}, err
	}
	if errors.Is(err, store.ErrObjects) { // what it continues from is there
		return tasks.Ending{}, tasks.Later(jitter.Around(objectsWait), "the store of saved sessions does not answer")
	}
	failure, failed := errors.AsType[*agent.Error](err)
	if err := p.Health.Blame(run.Detached, failure); err != nil {
		return tasks.Ending{}, err
	}
	if input, mistake := errors.AsType[*tasks.InputError](err); mistake {
		return tasks.Ending{
			Kind: tasks.Refused, At: time.Now(), Reason: input.Sentence, Option: input.Option,
		}, nil
	}
	if err := p.blameMachine(run.Detached, run.Claim.Record(), err); err != nil {
		return tasks.Ending{}, err
	}
	if failed && failure.Class != agent.ClassInternal && failure.Class.Retry() != agent.RetrySoon {
		return tasks.Ending{
			Kind: tasks.Failed, At: time.Now(), Reason: failure.User,
			Result: agent.Result{Outcome: agent.Failed, Error: failure},
		}, nil
	}
	if workspace.Lasting(err) {
		reason := "The repository could not be prepared: " + err.Error() + "."
		return tasks.Ending{Kind: tasks.Refused, At: time.Now(), Reason: reason}, nil
	}
	if rec := run.Claim.Record(); attempts(rec) >= maxAttempts {
		p.Log.Error("task failed", "run", rec.ID, "attempt", rec.Attempt, "err", err)
		return givenUp(err), nil
	}
	return tasks.Ending{}, err
}

// givenUp returns the ending of a task that could not be started in any attempt.
func givenUp(err error) tasks.Ending {
	reason := fmt.Sprintf("This could not be started in %d attempts. The worker's log has details.", maxAttempts)
	if why := workspace.Explain(err); why != "" {
		reason = fmt.Sprintf("The repository could not be prepared in %d attempts: %s.", maxAttempts, why)
	}
	return tasks.Ending{
		Kind: tasks.Failed, At: time.Now(), Reason: reason,
		Result: agent.Result{Outcome: agent.Failed, Error: agent.NewError(agent.ClassInternal, err.Error())},
	}
}

// localWait is how long a task waits for another worker after a failure of one worker's machine, ± 50 %.
const localWait = 20 * time.Second

// blameMachine hands back a task whose preparation failed if the worker's machine is the cause, by a check or by the
// error itself: a part of the disk may be damaged that no check uses. Such an error counts like any other after
// horizon, so that the task does not wait for ever.
func (p *Processor) blameMachine(ctx context.Context, rec store.Record, cause error) error {
	if err := p.Health.BlameDisks(ctx); err != nil {
		return err
	}
	if machine.LocalFault(cause) && time.Since(requested(rec)) < horizon {
		p.Log.Error("task hit a fault of this machine and is handed back", "run", rec.ID, "err", cause)
		return tasks.Later(jitter.Around(localWait), "the machine of the worker that took it has a fault")
	}
	return nil
}
