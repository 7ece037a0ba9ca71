package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// pressWhen presses a button as soon as the thread has it, and returns the ts of its message.
func pressWhen(ctx context.Context, w *world, thread, action string) {
	w.Helper()
	var ts string
	if err := w.slack.Wait(ctx, func(s *slackfake.Server) bool {
		for _, m := range s.Messages(channel, thread) {
			if strings.Contains(string(m.Blocks), `"action_id":"`+action+`"`) {
				ts = m.TS
			}
		}
		return ts != ""
	}); err != nil {
		w.Fatalf("button %s: %v\n%s", action, err, said(w, thread))
	}
	if err := w.slack.Press(ctx, "U0ANN", channel, ts, action); err != nil {
		w.Fatal(err)
	}
}

// said returns a thread's messages for failures.
func said(w *world, thread string) string {
	b, _ := json.MarshalIndent(w.slack.Messages(channel, thread), "", "  ")
	return string(b)
}

// A rule leaves commands to people. The agent's first one is approved for the whole task by a button in Slack, and the
// second one, of the same rule, needs no approval. Then the task is retried by a button and stopped by another.
func TestButtonsInSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure("rules:\n  - {tool: Bash, input: \"*deploy*\", action: ask, reason: it is Friday}\n")
	deploy := func(what string) modelfake.Turn {
		return modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]any{"command": "echo deploy " + what, "description": "Deploys"},
		}}}
	}
	w.model.Answer("deploy both", deploy("a"), deploy("b"), modelfake.Turn{Text: "Both are out."})
	base := w.standalone()
	w.slack.Interactivity(base + "/slack/interactions")
	ctx := await.Context(t)
	thread, err := w.slack.Mention(ctx, slackfake.Message{Channel: channel, User: "U0ANN", Text: "deploy both"})
	if err != nil {
		t.Fatal(err)
	}
	pressWhen(ctx, w, thread, "answer/1") // always
	pressWhen(ctx, w, thread, "retry")    // below the answer
	texts := said(w, thread)
	for _, want := range []string{"Both are out.", "✅ @u0ann: Always for this task"} {
		if !strings.Contains(texts, want) {
			t.Errorf("%q is not in %s", want, texts)
		}
	}
	if n := strings.Count(texts, "May I do this?"); n != 2 { // in blocks and text of one message
		t.Errorf("asked %d times in %s", n, texts)
	}
	// A task that is retried asks again, and can be stopped while it waits for that.
	if err := w.slack.Wait(ctx, func(s *slackfake.Server) bool {
		return strings.Count(said(w, thread), "May I do this?") == 4
	}); err != nil {
		t.Fatalf("%v\n%s", err, said(w, thread))
	}
	pressWhen(ctx, w, thread, "stop")
	if err := w.slack.Wait(ctx, func(*slackfake.Server) bool {
		return strings.Contains(said(w, thread), "Stopped by u0ann.")
	}); err != nil {
		t.Fatalf("%v\n%s", err, said(w, thread))
	}
}
