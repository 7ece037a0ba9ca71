package attempt

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/workspace"
)

// compareFor bounds the comparison at the end of a run, which the answer waits for. It takes a fraction of a second
// unless the clone is huge or hostile.
const compareFor = 20 * time.Second

// changeKeeper stores what runs change in their clones, for people to look at. It is safe for concurrent use. Errors
// are only logged: the work itself is saved elsewhere.
type changeKeeper struct {
	workspace *workspace.Workspace
	redactor  *agent.Redactor
	log       *slog.Logger
}

// checkpoint stores the changes of a run so far. The agent may be working.
func (k *changeKeeper) checkpoint(ctx context.Context, r *run, p place.Place) {
	if p.Clone.Dir == "" || !p.Writes || ctx.Err() != nil {
		return
	}
	found, err := k.workspace.Changes(ctx, p.Clone, workspace.Comparing{Live: true, Limit: tasks.DiffLimit})
	logline.Warn(k.log, err, "compare changes", "run", r.Claim.ID())
	if err != nil {
		return // the changes of the checkpoint before are better than none
	}
	c := tasks.NewChanges(found, k.redactor.String)
	c.Live = true
	k.store(ctx, r, c)
}

// keep stores the changes of a run that is over, or the change that it has reviewed, and counts the run's changes.
func (k *changeKeeper) keep(r *run, p place.Place, reviewed bool) tasks.Diffstat {
	ctx, cancel := context.WithTimeout(r.Detached, compareFor)
	defer cancel()
	if p.Clone.Dir == "" {
		return tasks.Diffstat{}
	}
	if p.Writes {
		live := r.result.Resources.Stuck > 0 // a process of the run may still change files
		return k.compare(ctx, r, p, workspace.Comparing{TrustedConfig: p.Trusted, Live: live}).Total
	}
	if reviewed {
		k.compare(ctx, r, p, workspace.Comparing{Reviewed: true})
	}
	return tasks.Diffstat{}
}

// compare stores the changes of a run that is over, or why there are none.
func (k *changeKeeper) compare(ctx context.Context, r *run, p place.Place, how workspace.Comparing) tasks.Changes {
	how.Limit = tasks.DiffLimit
	found, err := k.workspace.Changes(ctx, p.Clone, how)
	logline.Warn(k.log, err, "compare changes", "run", r.Claim.ID())
	c := tasks.NewChanges(found, k.redactor.String)
	if how.Reviewed {
		c.Head = p.Clone.Head
	}
	if err != nil {
		c.Failed = incomparable(ctx, err)
	}
	k.store(ctx, r, c)
	return c
}

// incomparable says, for people, why the changes are not known.
func incomparable(ctx context.Context, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "The clone has no git directory any more, so its files cannot be compared."
	}
	if ctx.Err() != nil {
		return "The clone took too long to compare."
	}
	return "The clone could not be compared; the worker's log has details."
}

func (k *changeKeeper) store(ctx context.Context, r *run, c tasks.Changes) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), uploadFor)
	defer cancel()
	logline.Warn(k.log, r.Claim.SaveLatest(ctx, tasks.DiffLog, c.Encode()), "keep changes", "run", r.Claim.ID())
}
