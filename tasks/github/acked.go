package github

import (
	"context"
	"slices"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
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
	if err != nil || len(o.spots()) == 0 {
		return r, err
	}
	gh, err := s.client(ctx, o)
	if err != nil {
		return nil, s.later("reach "+o.String(), err)
	}
	return &acked{Report: r, source: s, gh: gh, origin: o}, nil
}

// spots are the comments that have asked for a task.
func (o origin) spots() []spot {
	if o.Asked == nil {
		return slices.Clone(o.Also)
	}
	return append(slices.Clone(o.Also), o.Asked.spot)
}

// Close closes the report and puts up the signs. A comment that is gone needs none, nor does one that another task answers for now.
func (a *acked) Close(ctx context.Context, e tasks.Ending) error {
	if err := a.Report.Close(ctx, e); err != nil || e.Kind == tasks.Withdrawn {
		return err
	}
	var spots []spot
	if !goesOn(e) {
		spots = a.origin.spots()
	}
	for _, id := range e.Covers {
		if p, ok := spotOf(id); ok {
			spots = append(spots, p)
		}
	}
	for _, p := range spots {
		err := react(ctx, a.gh, a.origin, p, signOf(e.Kind == tasks.Answered))
		if hub.Permanent(err) {
			a.source.log.Warn("react", "thread", "github/"+a.origin.String(), "comment", p.ID, "err", err)
		} else if err != nil {
			return a.source.later("react", err)
		}
	}
	return nil
}
