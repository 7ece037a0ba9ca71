package github

import (
	"context"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// Final finds a task's final message: the review's comment, or the reply, by the mark. What is told of a repository that is only watched is
// not looked for.
func (s *Source) Final(ctx context.Context, t tasks.Task, after time.Time) (*tasks.Ending, error) {
	o, err := originOf(t)
	if err != nil || s.watched(o.Repo) {
		return nil, err
	}
	e, err := s.findFinal(ctx, t, o, after)
	if err != nil {
		return nil, s.later("look for an earlier final message on "+o.String(), err)
	}
	return e, nil
}

func (s *Source) findFinal(ctx context.Context, t tasks.Task, o origin, after time.Time) (*tasks.Ending, error) {
	gh, err := s.client(ctx, o)
	if err != nil {
		return nil, err
	}
	if t.Kind == kindReview {
		r := &report{source: s, gh: gh, origin: o, task: t}
		all, err := r.comments(ctx)
		if m := all[1].mark; err != nil || m.task != t.ID || !time.UnixMicro(m.at).After(after) {
			return nil, err
		}
		return &tasks.Ending{Kind: all[1].mark.ending, At: time.UnixMicro(all[1].mark.at).UTC()}, nil
	}
	l := letter{task: t.ID, to: spot{Place: inConversation}}
	places := []spot{l.to}
	if o.Asked != nil {
		l.since = o.Asked.At
		if o.Asked.Place == onLine {
			places = append(places, o.Asked.spot)
		}
	}
	for _, l.to = range places {
		sent, err := s.sent(ctx, gh, o, l)
		if err != nil {
			return nil, err
		}
		if e := l.final(sent, after); e != nil {
			return e, nil
		}
	}
	return nil, nil
}

// final is the latest ending after that time that one of these marks tells of; nil where there is none. Questions, updates and notes are no
// endings: their marks have no time, or the name of a note.
func (l letter) final(sent map[string]bool, after time.Time) *tasks.Ending {
	var last *tasks.Ending
	for mark := range sent {
		m := letterForm.FindStringSubmatch(mark)
		if m == nil || m[1] != l.task || tasks.EndingKind(m[2]) == noteEnding {
			continue
		}
		micros, err := strconv.ParseInt(m[3], 10, 64)
		if at := time.UnixMicro(micros).UTC(); err == nil && micros > 0 && at.After(after) && (last == nil || at.After(last.At)) {
			last = &tasks.Ending{Kind: tasks.EndingKind(m[2]), At: at}
		}
	}
	return last
}
