package worker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// Answers of an interrupted run should be in the task's final message, and the agent should not repeat them.
func TestAnswersSurviveAnInterruption(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	answered := make(chan agent.Spec, 2)
	f.agent.do = func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		if s.Resume != nil {
			answered <- s
			return answer("the second"), nil
		}
		h.Event(agent.Event{Kind: agent.TurnEnd, Text: "the first"})
		h.Event(agent.Event{Kind: agent.TurnEnd, Text: "an error", Error: true})
		s.Checkpoint(ctx, agent.Session{ID: "s", Data: []byte(line(s.Prompt.ID))})
		answered <- s
		<-ctx.Done()
		r := answer("the first")
		r.Outcome, r.Session.Data = agent.Stopped, nil // the fake notes the prompt
		return r, nil
	}
	stop := f.worker()
	id := f.submit(f.task("a", "x"))
	<-answered
	saved, err := f.store.Checkpoint(t.Context(), id)
	var c struct{ Answers string }
	if err == nil {
		err = json.Unmarshal(saved.Session.Meta, &c)
	}
	if err != nil || c.Answers != "the first" {
		t.Errorf("while it ran %q was kept, %v", c.Answers, err)
	}
	stop()
	f.worker()
	if s := <-answered; !strings.Contains(s.Prompt.Text, "Do not repeat them") {
		t.Errorf("the prompt does not mention the answers: %s", s.Prompt.Text)
	}
	if e := f.ending(id); e.Result.Text != "the first\n\nthe second" {
		t.Errorf("ending = %+v", e)
	}
}

// An ending without an answer includes the answers to earlier messages, whole, and the start of the rest.
func TestBodyOfAnEnding(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 2000)
	e := tasks.Ending{Kind: tasks.Cancelled, Result: agent.Result{Text: long, Partial: "half\nof it"}}
	if got, want := e.Body(), long+"\n\nPartial answer:\n\n> half\n> of it"; got != want {
		t.Errorf("body = %s", got)
	}
	if got := e.Said(); got != long+"\n\nhalf\nof it" {
		t.Errorf("said = %s", got)
	}
	if got := (tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "42", Partial: "4"}}).Body(); got != "42" {
		t.Errorf("body of an answer = %s", got)
	}
}
