package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// selective can ask people about some tasks only.
type selective struct {
	*talkingSource
	thread string
}

func (s selective) Capabilities() tasks.Capabilities {
	can := s.talkingSource.Capabilities()
	can.Talks, can.Quiet = func(t tasks.Task) bool { return t.Thread == s.thread }, true
	return can
}

func TestSelectiveTalker(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("post_update", `{"text":"hi"}`)
	})
	mine, other := f.task("a", "x"), f.task("b", "x")
	f.talker(selective{s, mine.Thread})
	if e := f.ending(f.submit(mine)); e.Result.Text != "Posted." {
		t.Errorf("about its own task: %q", e.Result.Text)
	}
	if e := f.ending(f.submit(other)); e.Result.Text != "no such tool" {
		t.Errorf("about another one: %q", e.Result.Text)
	}
}

// A source can decide who answers and how. A message that can only be an answer never becomes a task, however often it
// is delivered.
func TestReplyThatIsOnlyAnAnswer(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Red or blue?","options":["red","blue"]}`)
	})
	f.talker(s)
	id := f.submit(f.task("a", "paint"))
	q := <-s.asked
	order, reply := f.reply("a", "2"), f.reply("a", "")
	order.Reply = nil
	if r, err := f.desk.Submit(t.Context(), order); err != nil || r.Answered || r.ID != order.ID {
		t.Errorf("submitted: %+v, %v", r, err)
	}
	refused := errors.New("refused")
	reply.Actor = "bob"
	reply.Reply = &tasks.Reply{Only: true, Text: func(context.Context, tasks.Question) (string, error) {
		return "", refused
	}}
	if _, err := f.desk.Submit(t.Context(), reply); !errors.Is(err, refused) {
		t.Errorf("the source refuses: %v", err)
	}
	reply.Reply.Text = func(_ context.Context, asked tasks.Question) (string, error) {
		if asked.Key != q.Key {
			t.Errorf("asked about %+v", asked)
		}
		return "2", nil
	}
	early := reply
	early.ID = tasks.NewID(q.Asked.Add(-time.Second), "fake", "early")
	if r, err := f.desk.Submit(t.Context(), early); !errors.Is(err, tasks.ErrNoQuestion) {
		t.Errorf("written before the question: %+v, %v", r, err)
	}
	for i, fresh := range []bool{true, false} {
		r, err := f.desk.Submit(t.Context(), reply)
		if err != nil || !r.Answered || r.New != fresh || fresh && r.ID != id {
			t.Errorf("reply %d: %+v, %v", i, r, err)
		}
	}
	if e := f.ending(id); e.Kind != tasks.Answered || e.Result.Outcome != agent.Done ||
		e.Result.Text != "bob answered: blue" {
		t.Errorf("%+v", e)
	}
	late := f.reply("a", "2")
	late.ID = reply.ID
	if r, err := f.desk.Submit(t.Context(), late); err != nil || r.New || !r.Answered {
		t.Errorf("the answer again: %+v, %v", r, err)
	}
}
