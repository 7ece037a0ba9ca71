package slack

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/tasks"
)

// Ask posts a question that notifies whoever asked for the task, and how it is answered.
func (s *Source) Ask(ctx context.Context, t tasks.Task, q tasks.Question) error {
	o, f, err := s.join(ctx, t)
	if err != nil {
		return err
	}
	me, err := s.me.get(ctx)
	if err != nil {
		return err
	}
	return s.speak(ctx, o, f, question(t, o, q, howToAnswer(q, me, s.link(t.ID, "in the console")), answerButtons(t, q)...))
}

// question is what is said to ask it.
func question(t tasks.Task, o origin, q tasks.Question, foot string, buttons ...button) []part {
	mark := marker{task: t.ID, part: questionPart, question: q.Key}
	lead := "<@" + o.User + "> I have a question before I go on."
	return inParts(mark, lead, asked(q), foot, buttons...)
}

// Settle shows below a question, in place of its buttons, what became of it. One that had to be asked in plain text stays as it is.
func (s *Source) Settle(ctx context.Context, t tasks.Task, q tasks.Question) error {
	o, err := originOf(t)
	if err != nil {
		return err
	}
	list := question(t, o, q, outcome(q))
	last := list[len(list)-1]
	for m, err := range s.thread(ctx, o, o.TS, "") {
		if err != nil {
			return fmt.Errorf("find question: %w", err)
		}
		if markerOf(m) != last.mark {
			continue
		}
		s.lastTurn(ctx, o)
		return s.edit(ctx, o, m.Timestamp, last.message(maxEdit)...)
	}
	return nil
}

// outcome tells the answer in mrkdwn.
func outcome(q tasks.Question) string {
	switch a := q.Answer; {
	case a == nil:
		return ""
	case a.Expired && q.Consent != "":
		return "⏱ Nobody approved of this in time."
	case a.Expired:
		return "⏱ Nobody answered in time."
	default:
		return "✅ " + named(a.By) + ": " + escape(quiet(line(a.Text, maxSentence)))
	}
}

// named is somebody in mrkdwn. An edited message notifies nobody, so that people may be called by their names.
func named(by string) string {
	if userForm.fits(by) {
		return "<@" + by + ">"
	}
	return escape(quiet(line(by, 100)))
}
