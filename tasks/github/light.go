package github

import (
	"context"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
)

// lightName is what check runs and statuses are called.
const lightName = "errand"

// light is the sign beside the reviewed commit: a check run, or a commit status for a token, to which GitHub refuses check runs.
type light interface {
	// show tells what is being done.
	show(ctx context.Context, action string) error
	// end tells what has come of it; again, if need be.
	end(ctx context.Context, v verdict) error
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

// Waits shows why a review waits beside its commit. Of other work nothing is shown before its end.
func (s *Source) Waits(ctx context.Context, t tasks.Task, text string) error {
	o, err := originOf(t)
	if err != nil || t.Kind != "review" || s.watched(o.Repo) {
		return err
	}
	gh, err := s.clients.of(ctx, o)
	if err != nil {
		return err
	}
	l, err := s.openLight(ctx, gh, o, t)
	if err == nil {
		err = l.show(ctx, markdown.NeutralLine(line(text, maxStatus)))
	}
	if lasting(err) {
		return nil // GitHub allows no light, as the report will say
	}
	return err
}

// dark is the light where GitHub allows none.
type dark struct{}

func (dark) show(context.Context, string) error { return nil }
func (dark) end(context.Context, verdict) error { return nil }
func (dark) pause() time.Duration               { return time.Minute }

// verdict is what a light says in the end.
type verdict struct {
	conclusion, title, summary string // of a check run
	line                       string // of a status, to be cut
	at                         time.Time
}

// kept is what of a verdict holds for a later head that changes the same.
type kept struct {
	Conclusion string `json:"conclusion"`
	Title      string `json:"title"`
	Line       string `json:"line"`
}

func (v verdict) kept() kept { return kept{v.conclusion, v.title, v.line} }

// again is that verdict for such a head, and why it is.
func (k kept) again(e tasks.Ending) verdict {
	return verdict{conclusion: k.Conclusion, title: k.Title, line: k.Line, summary: markdown.Unping(line(e.Sentence(), 500)), at: e.At}
}

// verdictOf is the verdict on an ending of which no more is known.
func verdictOf(e tasks.Ending) verdict {
	v := verdict{conclusion: conclusion(e.Kind), at: e.At}
	if e.Kind == tasks.Answered {
		v.title, v.line = "Reviewed", "Reviewed, see the conversation"
		v.summary = "The review is in the conversation of the pull request.\n\n" + markdown.Unping(e.Footer())
		return v
	}
	v.title, v.line = "Not reviewed", "Not reviewed: "+markdown.Unping(line(e.Sentence(), 500))
	v.summary = v.line
	return v
}
