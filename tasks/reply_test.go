package tasks

import (
	"context"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
)

// selective talks about some tasks alone.
type selective struct {
	*talkingSource
	thread string
}

func (s selective) Talks(t Task) bool { return t.Thread == s.thread }
func (s selective) Assures(Task) bool { return false }

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

// At a deaf desk a message is an answer only if it is given as one, and then it is no task, however often it comes.
func TestDeafDesk(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Red or blue?","options":["red","blue"]}`)
	})
	f.talker(s)
	id, desk := f.submit(f.task("a", "paint")), f.desk.Deaf()
	q := <-s.asked
	order, message := f.reply("a", "2"), NewID(time.Now(), "fake", "answer")
	if r, err := desk.Submit(t.Context(), order); err != nil || r.Heard || r.ID != order.ID {
		t.Errorf("submitted: %+v, %v", r, err)
	}
	for i, want := range []bool{false, true} {
		a, known, err := desk.Reply(t.Context(), id, q.Key, "bob", "2", message)
		if err != nil || known != want || !known && (a.Text != "blue" || a.By != "bob" || a.Message != message) {
			t.Errorf("reply %d: %+v, %t, %v", i, a, known, err)
		}
	}
	late := f.task("a", "2")
	late.ID = message
	if r, err := desk.Submit(t.Context(), late); err != nil || r.New || !r.Heard {
		t.Errorf("the answer again: %+v, %v", r, err)
	}
	if e := f.ending(id); e.Kind != Answered || e.Result.Outcome != agent.Done {
		t.Errorf("%+v", e)
	}
}
