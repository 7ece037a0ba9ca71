package github

import (
	"context"
	"log/slog"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// labeled submits the review of a stranger's pull request to which somebody gave the label that says so. Whether he may say so is asked
// before the run. The payload has the head that was there when he did.
func (s *Source) labeled(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	e := d.pull
	if e.GetLabel().GetName() != s.cfg.ForkLabel || !hub.IsFork(e.GetPullRequest()) {
		return "", ignored{"The label means nothing here.", slog.LevelDebug}
	}
	t, err := s.reviewOf(ctx, d)
	if err != nil {
		return "", err
	}
	t.origin.ApprovedBy = e.GetSender().GetLogin()
	if t, err = s.expected(ctx, t, e.GetPullRequest()); err != nil {
		return "", err
	}
	return submitted(s.submit(ctx, desk, t))
}
