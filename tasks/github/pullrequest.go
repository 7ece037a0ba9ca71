package github

import (
	"context"
	"fmt"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// review submits the review of a pull request that was opened or changed, or whose review was requested.
func (i *interpreter) review(ctx context.Context, d delivery) (response string, err error) {
	if err := i.worksOn(d.pull.GetRepo().GetFullName()); err != nil {
		return "", err
	}
	t, err := i.reviews.Of(ctx, d.id, d.pull)
	if err != nil {
		return "", err
	}
	return i.reviews.Replace(ctx, t)
}

// retargeted submits the review of a pull request whose base has changed: its changes and its rules are others now.
func (i *interpreter) retargeted(ctx context.Context, d delivery) (response string, err error) {
	if d.pull.GetChanges().GetBase() == nil {
		return "", subject.IgnoreQuietly("The base of the pull request is the same.")
	}
	return i.review(ctx, d)
}

// labeled submits the review of a fork's pull request that was given the approving label. The permission of the person
// is checked before the run. The payload has the head at the time of the label.
func (i *interpreter) labeled(ctx context.Context, d delivery) (response string, err error) {
	e := d.pull
	if !subject.IsLabel(e.GetLabel().GetName(), i.gate.ForkLabel) || !hub.IsFork(e.GetPullRequest()) {
		return "", subject.IgnoreQuietly("The label has no meaning here.")
	}
	if err := i.worksOn(e.GetRepo().GetFullName()); err != nil {
		return "", err
	}
	t, err := i.reviews.Of(ctx, d.id, e)
	if err != nil {
		return "", err
	}
	if t.Why != (subject.Ignored{}) {
		return "", t.Why
	}
	t.About.ApprovedBy = e.GetSender().GetLogin()
	return i.reviews.SubmitApproved(ctx, t, t.Pull.GetUpdatedAt().Time)
}

// endReviews ends the reviews of a closed pull request or draft. If it is reopened, they start again.
func (i *interpreter) endReviews(ctx context.Context, d delivery) (response string, err error) {
	e := d.pull
	if err := i.worksOn(e.GetRepo().GetFullName()); err != nil {
		return "", err
	}
	o := subject.OfPull(e.GetRepo().GetFullName(), e.GetPullRequest())
	why, err := i.reviews.End(ctx, o, e.GetPullRequest())
	if err != nil {
		return "", err
	}
	if d.action == actionClosed {
		o.Installation = e.GetInstallation().GetID()
		if err := i.reviews.CloseFindings(ctx, o, e.GetPullRequest().GetMerged()); err != nil {
			i.log.Warn("count findings", "err", err)
		}
	}
	return fmt.Sprintf("Stopped the reviews of %s. %s", o, why), nil
}
