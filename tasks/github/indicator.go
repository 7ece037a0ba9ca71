package github

import (
	"context"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// openIndicator finds or creates the status indicator of a review.
func (s *Source) openIndicator(ctx context.Context, gh *github.Client, o origin, t tasks.Task) (hub.StatusIndicator, error) {
	return s.forge.OpenIndicator(ctx, gh, hub.IndicatorTarget{Repo: o.Repo, Commit: o.Head, Task: t.ID, URL: s.page(o, t.ID)})
}

// Waits shows on the commit why a review waits. Other tasks show nothing before they end.
func (s *Source) Waits(ctx context.Context, t tasks.Task, text string) error {
	o, err := originOf(t)
	if err != nil || t.Kind != kindReview || s.watched(o.Repo) {
		return err
	}
	gh, err := s.client(ctx, o)
	if err != nil {
		return err
	}
	indicator, err := s.openIndicator(ctx, gh, o, t)
	if err == nil {
		err = indicator.Show(ctx, markdown.NeutralLine(untrusted.Line(text, hub.MaxStatus)))
	}
	if hub.Permanent(err) {
		return nil // GitHub allows no indicator; the report says so
	}
	return err
}

// kept is the part of a verdict that also holds for a later head with the same changes.
type kept struct {
	Conclusion string `json:"conclusion"`
	Title      string `json:"title"`
	Line       string `json:"line"`
}

func keep(v hub.Verdict) kept { return kept{v.Conclusion, v.Title, v.Line} }

// verdict returns the verdict for a later head whose review was refused because it has the same changes.
func (k kept) verdict(e tasks.Ending) hub.Verdict {
	return hub.Verdict{Conclusion: k.Conclusion, Title: k.Title, Line: k.Line, Summary: markdown.Unping(untrusted.Line(e.Sentence(), 500)), At: e.At}
}

// verdictOf returns the verdict on an ending without findings.
func verdictOf(e tasks.Ending) hub.Verdict {
	v := hub.Verdict{Conclusion: conclusion(e.Kind), At: e.At}
	if e.Kind == tasks.Answered {
		v.Title, v.Line = "Reviewed", "Reviewed, see the conversation"
		v.Summary = "The review is in the conversation of the pull request.\n\n" + markdown.Unping(e.Footer())
		return v
	}
	v.Title, v.Line = "Not reviewed", "Not reviewed: "+markdown.Unping(untrusted.Line(e.Sentence(), 500))
	v.Summary = v.Line
	return v
}

// conclusion returns the conclusion for an ending without findings. It is never one that GitHub counts as failed, such
// as timed_out: people judge the change, and errand's problems are not theirs. Nor is it success, which would say that
// there is nothing to read.
func conclusion(k tasks.EndingKind) string {
	if k == tasks.Cancelled {
		return "cancelled"
	}
	return "neutral"
}
