package slack

import (
	"context"
	"errors"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
)

const (
	marked    = "The pull request is ready for review."
	markedAll = "The pull requests are ready for review."
	noDraft   = "I have opened no pull request in this thread."
)

// readyForm matches a message that wants the draft of its thread to be marked as ready, and nothing else.
var readyForm = form(`(?i)^(?:please\s+)?mark\s+(?:(?:it|this|the\s+(?:pr|pull\s+request|draft))\s+)?(?:as\s+)?ready(?:\s+for\s+review)?\s*[.!]*$`)

// drafts marks errand's pull requests as ready for review.
type drafts struct {
	pulls Pulls // nil: there is no forge
	guard *guard
}

// markReady marks the pull requests of a task. A user whose rights at the forge are limited must be allowed to write
// there; others must be allowed to control the task.
func (d *drafts) markReady(ctx context.Context, desk *desk.Desk, user string, st tasks.Status) (string, error) {
	var all []*tasks.Published
	if d.pulls != nil && st.Ending != nil {
		all = st.Ending.PullRequests()
	}
	if len(all) == 0 {
		return "", inputError(noDraft)
	}
	for _, p := range all {
		by := tasks.Asker{Source: sourceName, Account: user}
		if err := desk.PermitReady(ctx, by, d.guard.controls(user, st.Task), p.Repo); err != nil {
			return "", err
		}
	}
	for _, p := range all {
		if err := d.pulls.MarkReady(ctx, p.Repo, p.PullRequest.Number); err != nil {
			return "", tasks.FromForge(err)
		}
	}
	if len(all) > 1 {
		return markedAll, nil
	}
	return marked, nil
}

// markReady marks the draft of the task that a button is about.
func (b *buttons) markReady(ctx context.Context, p press) (string, error) {
	st, err := statusOf(ctx, b.desk, p.value)
	if err != nil {
		return "", err
	}
	return b.drafts.markReady(ctx, b.desk, p.origin.User, st)
}

// markReady marks the draft of a thread and returns the answer.
func (in *interpreter) markReady(ctx context.Context, o origin, thread tasks.Thread) (reply string, err error) {
	if o.ThreadTS == "" || thread.Latest == "" {
		return inThread, nil
	}
	err = in.as(ctx, o.User, "ready", thread.Latest, func(ctx context.Context) error {
		st, err := in.desk.Latest(ctx, thread)
		if errors.Is(err, tasks.ErrNotFound) {
			return inputError(intake.Forgotten)
		} else if err != nil {
			return err
		}
		reply, err = in.drafts.markReady(ctx, in.desk, o.User, st)
		return err
	})
	return reply, err
}
