package autofix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// GitHub computes whether a pull request can be merged only on request, and has the result some seconds later.
const (
	mergePause    = 10 * time.Second
	mergePatience = 5 * time.Minute
)

// conflictOrder is the prompt for resolving conflicts.
const conflictOrder = `This pull request has merge conflicts with its base, origin/%s. Merge origin/%[1]s and resolve each conflict so that the intent of both sides is kept. Read the history of both sides before you decide. Do not rebase, and change nothing else. Build and run the tests, then commit the merge. In your answer say for each conflict what both sides wanted and how you resolved it. If you cannot tell what is right, abort the merge and say what has to be decided.`

// ConflictPrompt returns the prompt for resolving conflicts. It checks that there are some.
func (f *Fixes) ConflictPrompt(ctx context.Context, k Work) (string, error) {
	me, err := k.Forge.Login(ctx)
	if err != nil {
		return "", k.BriefError("read "+k.About.String(), err)
	}
	now := k.Now()
	if k.Pull.Mergeable == nil && now.Before(thread.AskedAt(k.Task.ID).Add(mergePatience)) {
		why := "GitHub is still computing whether " + k.About.String() + " can be merged"
		return "", &tasks.ErrLater{At: now.Add(mergePause), Why: why, Tell: "merge"}
	}
	if k.Pull.Mergeable == nil || k.Pull.GetMergeable() {
		return "", thread.Refuse("There are no conflicts with " + k.About.Base + ".")
	}
	asked := k.About.Asked != nil || OwnWork(k.Pull, me)
	key, by, err := conflicts(ctx, k.Thread, k.Pull, asked)
	if err != nil {
		return "", err
	}
	if !asked {
		if !subject.HasLabel(k.Pull.Labels, ConflictsLabel) {
			return "", thread.Refuse("The pull request no longer has the label " + ConflictsLabel + ".")
		}
		err := f.Gate.MustWrite(ctx, k.Ref, by)
		if _, refused := errors.AsType[*tasks.InputError](err); refused { // for good: no poll submits it again
			err = cmp.Or(f.Memory.ChangeState(ctx, k.Ref, func(p *subject.State) error {
				p.Begin(key, k.Task.ID)
				return nil
			}), err)
		}
		if err != nil {
			return "", err
		}
	}
	if err := f.Memory.OnceUnasked(ctx, k.Task, k.About, key); err != nil {
		return "", err
	}
	return fmt.Sprintf(conflictOrder, k.About.Base) + k.About.Added(k.Task), nil
}

// conflicts returns the key for the conflicts of a head with its base: after one attempt, one of the two has to move
// before the next. The base SHA in a pull request itself is that of its last push, so the branch is read. Unless the
// work is asked for anyway, the key names who added the label last, or subject.Ghost if unknown: only the events have
// that.
func conflicts(ctx context.Context, t thread.Thread, pr *github.PullRequest, asked bool) (key, by string, err error) {
	base, _, err := t.GH.Repositories.GetBranch(ctx, t.Owner, t.Name, pr.GetBase().GetRef(), 0)
	if err != nil {
		return "", "", t.BriefError("read branch "+pr.GetBase().GetRef()+" of "+t.Repo, err)
	}
	key = "conflict " + pr.GetHead().GetSHA() + " " + base.GetCommit().GetSHA()
	if asked {
		return key, "", nil
	}
	last, err := t.LastEvent(ctx, func(e *github.IssueEvent) bool { return subject.IsLabelling(e, ConflictsLabel) })
	by = cmp.Or(last.GetActor().GetLogin(), subject.Ghost)
	return key + " " + by, by, err
}

// ConflictsLabel requests the resolution of conflicts on a pull request of others, if a person with write access sets
// it.
const ConflictsLabel = "errand:resolve-conflicts"

// MissedConflict submits the resolution of the conflicts of a pull request that a poll has found. Lists do not contain
// them, and GitHub starts to compute them on the first request, so the next poll sees them. own reports whether it is
// errand's own work.
func (f *Fixes) MissedConflict(ctx context.Context, d *desk.Desk, w Work, own bool) error {
	pr, err := w.Thread.Pull(ctx)
	if err != nil {
		return fmt.Errorf("read pull request: %w", err)
	}
	if pr.Mergeable == nil || pr.GetMergeable() {
		return nil
	}
	key, _, err := conflicts(ctx, w.Thread, pr, own)
	if err != nil {
		return err
	}
	return f.submitMissed(ctx, d, subject.KindMergeConflict, key, w)
}
