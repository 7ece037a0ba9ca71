package github

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/tasks"
)

// kinds are the sorts of work there are: how each is briefed, and how it is told.
var kinds = map[string]struct {
	brief func(s *Source, ctx context.Context, t tasks.Task, o origin, dir string) (tasks.Brief, error)
	open  func(s *Source, ctx context.Context, t tasks.Task, o origin) (tasks.Report, error)
}{
	"review":  {(*Source).briefReview, (*Source).openReview},
	"comment": {(*Source).briefComment, (*Source).openReply},
	"analyze": {(*Source).briefAnalysis, (*Source).openReply},
	"fix":     {(*Source).briefFix, (*Source).openReply},

	"check_failure":   {(*Source).briefChecks, (*Source).openReply},
	"merge_conflict":  {(*Source).briefConflict, (*Source).openReply},
	"review_response": {(*Source).briefResponse, (*Source).openReply},
}

// Brief asks GitHub what the task is about, as it is now.
func (s *Source) Brief(ctx context.Context, t tasks.Task, dir string) (tasks.Brief, error) {
	o, err := originOf(t)
	if err != nil {
		return tasks.Brief{}, err
	}
	k, ok := kinds[t.Kind]
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
	k, ok := kinds[t.Kind]
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
