package github

import (
	"context"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

// lightName is what check runs and statuses are called.
const lightName = "errand"

// light is the sign beside the reviewed commit: a check run, or a commit status for a token, to which GitHub refuses check runs.
type light interface {
	// show tells what is being done.
	show(ctx context.Context, action string) error
	// end tells what has come of it; again, if need be.
	end(ctx context.Context, e tasks.Ending) error
	// pause is the least time between two shows.
	pause() time.Duration
}

// openLight finds the light of a task or switches it on.
func (s *Source) openLight(ctx context.Context, gh *github.Client, o origin, t tasks.Task) (light, error) {
	if s.cfg.Token != "" {
		return s.openStatus(ctx, gh, o, t)
	}
	return s.openCheck(ctx, gh, o, t)
}

// dark is the light where GitHub allows none.
type dark struct{}

func (dark) show(context.Context, string) error      { return nil }
func (dark) end(context.Context, tasks.Ending) error { return nil }
func (dark) pause() time.Duration                    { return time.Minute }

// verdict is an ending in one line of text.
func verdict(e tasks.Ending) string {
	if e.Kind == tasks.Answered {
		return "Reviewed, see the conversation"
	}
	return "Not reviewed: " + unping(line(e.Sentence(), 500))
}
