package github

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// labeled submits the review of a stranger's pull request to which somebody gave the label that says so. Whether he may say so is asked
// before the run. The payload has the head that was there when he did.
func (s *Source) labeled(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	var e github.PullRequestEvent
	if err := json.Unmarshal(d.payload, &e); err != nil {
		return "", unreadable{fmt.Errorf("read payload: %w", err)}
	}
	if e.GetLabel().GetName() != s.cfg.ForkLabel || !hub.IsFork(e.GetPullRequest()) {
		return "", ignored{"The label means nothing here.", slog.LevelDebug}
	}
	t, err := s.reviewOf(ctx, d)
	if err != nil {
		return "", err
	}
	o, err := originOf(t)
	if err != nil {
		return "", err
	}
	o.ApprovedBy = e.GetSender().GetLogin()
	if t.Origin, err = json.Marshal(o); err != nil {
		return "", fmt.Errorf("marshal origin: %w", err)
	}
	if t, err = s.expected(ctx, t, e.GetPullRequest()); err != nil {
		return "", err
	}
	return s.submit(ctx, desk, t)
}
