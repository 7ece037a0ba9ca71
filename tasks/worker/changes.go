package worker

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/workspace"
)

// compareFor bounds the comparison at the end of a run, which the answer waits for. It takes a fraction of a second
// unless the clone is huge or hostile.
const compareFor = 20 * time.Second

// changeKeeper stores what runs change in their clones, for people to look at. It is safe for concurrent use. Errors
// are only logged: the work itself is saved elsewhere.
type changeKeeper struct{ *Config }

// checkpoint stores the changes of a run so far. The agent may be working.
func (k *changeKeeper) checkpoint(ctx context.Context, r *run, p place.Place) {
	if p.Clone.Dir == "" || !p.Writes || ctx.Err() != nil {
		return
	}
	found, err := k.Workspace.Changes(ctx, p.Clone, workspace.Comparing{Live: true, Limit: tasks.DiffLimit})
	k.warn(err, "compare changes", "run", r.Claim.ID())
	if err == nil { // otherwise the changes of the checkpoint before are better than none
		c := tasks.NewChanges(found, k.Policy.Redactor.String)
		c.Live = true
		k.store(ctx, r, c)
	}
}

// keep stores the changes of a run that is over, or the change that it has reviewed, and counts the run's changes.
func (k *changeKeeper) keep(r *run, p place.Place, reviewed bool) tasks.Diffstat {
	ctx, cancel := context.WithTimeout(r.Detached, compareFor)
	defer cancel()
	switch {
	case p.Clone.Dir == "":
	case p.Writes:
		live := r.result.Resources.Stuck > 0 // a process of the run may still change files
		return k.compare(ctx, r, p, workspace.Comparing{TrustedConfig: p.Trusted, Live: live}).Total
	case reviewed:
		k.compare(ctx, r, p, workspace.Comparing{Reviewed: true})
	}
	return tasks.Diffstat{}
}

// compare stores the changes of a run that is over, or why there are none.
func (k *changeKeeper) compare(ctx context.Context, r *run, p place.Place, how workspace.Comparing) tasks.Changes {
	how.Limit = tasks.DiffLimit
	found, err := k.Workspace.Changes(ctx, p.Clone, how)
	k.warn(err, "compare changes", "run", r.Claim.ID())
	c := tasks.NewChanges(found, k.Policy.Redactor.String)
	if how.Reviewed {
		c.Head = p.Clone.Head
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		c.Failed = "The clone has no git directory any more, so its files cannot be compared."
	case ctx.Err() != nil:
		c.Failed = "The clone took too long to compare."
	default:
		c.Failed = "The clone could not be compared; the worker's log has details."
	}
	k.store(ctx, r, c)
	return c
}

func (k *changeKeeper) store(ctx context.Context, r *run, c tasks.Changes) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), uploadFor)
	defer cancel()
	k.warn(r.Claim.SaveLatest(ctx, tasks.DiffLog, c.Encode()), "keep changes", "run", r.Claim.ID())
}
