package github

import (
	"context"
	"slices"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

// acked is the report of a task that comments have asked for: when it is closed they get a sign of how it ended.
type acked struct {
	tasks.Report
	source *Source
	gh     *github.Client
	origin origin
}

// acked adds the sign to a report, if a comment asked for the task.
func (s *Source) acked(ctx context.Context, o origin, r tasks.Report, err error) (tasks.Report, error) {
	if err != nil || o.Asked == nil {
		return r, err
	}
	gh, err := s.clients.of(ctx, o)
	if err != nil {
		return nil, s.later("reach "+o.String(), err)
	}
	return &acked{Report: r, source: s, gh: gh, origin: o}, nil
}

// Close closes the report and puts up the signs. A comment that is gone needs none, nor does one that another task answers for now.
func (a *acked) Close(ctx context.Context, e tasks.Ending) error {
	if err := a.Report.Close(ctx, e); err != nil || e.Kind == tasks.Withdrawn {
		return err
	}
	var spots []spot
	if !goesOn(e) {
		spots = append(slices.Clone(a.origin.Also), a.origin.Asked.spot)
	}
	for _, id := range e.Covers {
		if p, ok := spotOf(id); ok {
			spots = append(spots, p)
		}
	}
	for _, p := range spots {
		err := react(ctx, a.gh, a.origin, p, signOf(e.Kind == tasks.Answered))
		if lasting(err) {
			a.source.log.Warn("react", "thread", "github/"+a.origin.String(), "comment", p.ID, "err", err)
		} else if err != nil {
			return a.source.later("react", err)
		}
	}
	return nil
}
