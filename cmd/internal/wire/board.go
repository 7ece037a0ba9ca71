package wire

import (
	"context"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack"
)

// board tells in Slack what comes of the repositories on GitHub that are only watched. Slack's source asks GitHub's about pull requests, so it is made
// later, but before anything happens.
type board struct {
	slack *slack.Source // nil where there is no Slack: then no repository is only watched
}

// Watches reports whether a repository is only watched.
func (b *board) Watches(repo string) bool { return b.slack != nil && b.slack.Watches(repo) }

// Tell says a notice in Slack.
func (b *board) Tell(ctx context.Context, n tasks.Notice) error { return b.slack.Tell(ctx, n) }
