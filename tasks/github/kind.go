package github

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/tasks"
)

// The kinds of tasks.
const (
	kindReview         = "review"
	kindComment        = "comment"
	kindAnalyze        = "analyze"
	kindFix            = "fix"
	kindCheckFailure   = "check_failure"
	kindMergeConflict  = "merge_conflict"
	kindReviewResponse = "review_response"
)

// kind is how tasks of a kind are briefed and reported.
type kind struct {
	brief     func(s *Source, ctx context.Context, t tasks.Task, o origin, dir string) (tasks.Brief, error)
	open      func(s *Source, ctx context.Context, t tasks.Task, o origin) (tasks.Report, error)
	automatic bool // it happens without being asked for, unless the repository's settings switch it off
	asks      bool // the agent may ask the person who wants it
}

// kinds returns every kind there is. Each may have a model in a repository's settings. (A variable would be an initialization cycle.)
func kinds() map[string]kind {
	return map[string]kind{
		kindReview:         {brief: (*Source).briefReview, open: (*Source).openReview, automatic: true},
		kindComment:        {brief: (*Source).briefComment, open: (*Source).openReply, asks: true},
		kindAnalyze:        {brief: (*Source).briefAnalysis, open: (*Source).openReply},
		kindFix:            {brief: (*Source).briefFix, open: (*Source).openReply, asks: true},
		kindCheckFailure:   {brief: (*Source).briefChecks, open: (*Source).openReply, automatic: true, asks: true},
		kindMergeConflict:  {brief: (*Source).briefConflict, open: (*Source).openReply, automatic: true, asks: true},
		kindReviewResponse: {brief: (*Source).briefResponse, open: (*Source).openReply, automatic: true, asks: true},
	}
}

// Brief asks GitHub what the task is about, as it is now.
func (s *Source) Brief(ctx context.Context, t tasks.Task, dir string) (tasks.Brief, error) {
	o, err := originOf(t)
	if err != nil {
		return tasks.Brief{}, err
	}
	k, ok := kinds()[t.Kind]
	if !ok {
		return tasks.Brief{}, unknownKind(t)
	}
	if o.Asked != nil || o.Action == requestedReview {
		if err := s.mustWrite(ctx, o, t.Actor); err != nil {
			return tasks.Brief{}, err
		}
	}
	switch {
	case o.byBot():
		err = s.round(ctx, t, o)
	case !nobodyAsked(t, o):
		err = s.spoke(ctx, o) // not when it was said: then anybody could keep us going
	}
	if err != nil {
		return tasks.Brief{}, err
	}
	b, err := k.brief(s, ctx, t, o, dir)
	if err == nil && s.watched(o.Repo) {
		b.System += "\n" + unwritten
	}
	return b, err
}

// Open finds what was posted of the task, or begins it.
func (s *Source) Open(ctx context.Context, t tasks.Task) (tasks.Report, error) {
	o, err := originOf(t)
	if err != nil {
		return nil, err
	}
	k, ok := kinds()[t.Kind]
	if !ok {
		return nil, unknownKind(t)
	}
	if s.watched(o.Repo) {
		return s.openNotice(ctx, t, o)
	}
	r, err := k.open(s, ctx, t, o)
	return s.acked(ctx, o, r, err)
}

// unknownKind is what a worker says to a task of a newer front door.
func unknownKind(t tasks.Task) error {
	return fmt.Errorf("brief task %s: this worker does not know the kind %q, a newer one may", t.ID, t.Kind)
}
