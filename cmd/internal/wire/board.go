package wire

import (
	"context"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack"
)

// board posts the results of watched GitHub repositories to Slack. The GitHub source needs it before the Slack source
// exists, so slack is set later, but before anything runs.
type board struct {
	slack *slack.Source // nil without Slack: then no repository is only watched
}

// Watches reports whether a repository is only watched.
func (b *board) Watches(repo string) bool { return b.slack != nil && b.slack.Watches(repo) }

// Tell posts a notice to Slack.
func (b *board) Tell(ctx context.Context, n tasks.Notice) error { return b.slack.Tell(ctx, n) }
