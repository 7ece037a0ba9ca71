package main

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// The account's usage limit is reached in the middle of the work. The thread shows until when it lasts. Then the work
// continues where it was, in the same conversation, to one final message. In between, the fleet shows that its
// credential is held back.
func TestUsageLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	delete(w.env, "ANTHROPIC_API_KEY")
	w.env["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-end-to-end"
	limit := http.Header{
		"Anthropic-Ratelimit-Unified-Status":               {"rejected"},
		"Anthropic-Ratelimit-Unified-Representative-Claim": {"five_hour"},
	}
	reached, gate := make(chan struct{}, 1), make(chan struct{})
	w.model.Answer("pay the invoices",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]string{"command": "echo ha$((1))f > paid.txt"},
		}}},
		modelfake.Turn{Started: reached, Gate: gate, Status: http.StatusTooManyRequests, Header: limit})
	w.model.Answer("You were interrupted",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]string{"command": "cat paid.txt"},
		}}},
		modelfake.Turn{Text: "They are paid."})
	base := w.standalone()
	root := w.mention("pay the invoices", "")
	<-reached
	limit.Set("Anthropic-Ratelimit-Unified-Reset", strconv.FormatInt(time.Now().Add(30*time.Second).Unix(), 10))
	close(gate)

	id := w.taskID(root)
	notice := w.says(root, "Paused until")
	if !strings.Contains(notice, "has reached its usage limit") || !strings.Contains(notice, "enqueue cancel "+id) {
		t.Errorf("the thread shows: %s", notice)
	}
	if status, health := w.read(base+"/api/health", token); status != http.StatusServiceUnavailable ||
		!strings.Contains(health, "the model account has reached its usage limit") {
		t.Errorf("health is %d:\n%s", status, health)
	}
	if final := w.answers(root, 1); len(final) != 1 || !strings.Contains(final[0], "They are paid.") {
		t.Errorf("final messages: %s", final)
	}
	calls := w.model.Requests()
	last := calls[len(calls)-1]
	const session = "X-Claude-Code-Session-Id"
	if got := last.Header.Get(session); got == "" || got != calls[0].Header.Get(session) {
		t.Errorf("session %q, before %q", got, calls[0].Header.Get(session))
	}
	for _, want := range []string{"pay the invoices", "(the model account has reached its usage limit)", "ha1f"} {
		if !strings.Contains(string(last.Body), want) {
			t.Errorf("%q is not in what the model was asked:\n%s", want, last.Body)
		}
	}
	w.secretsStayInside()
}

// If a model is overloaded for longer than the CLI retries, another run asks it again in the same conversation.
func TestOverload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("pay the invoices", modelfake.Turn{Status: 529})
	w.model.Answer("You were interrupted", modelfake.Turn{Text: "They are paid. (prompts so far: {{turns}})"})
	w.standalone()
	root := w.mention("pay the invoices", "")
	if final := w.answers(root, 1); len(final) != 1 ||
		!strings.Contains(final[0], "They are paid. (prompts so far: 2)") {
		t.Errorf("final messages: %s", final)
	}
}

// says waits for a message of the bot with this text.
func (w *world) says(thread, words string) (text string) {
	w.Helper()
	ctx := await.Context(w)
	err := w.slack.Wait(ctx, func(s *slackfake.Server) bool {
		for _, m := range s.Messages(channel, thread) {
			if text = m.Text + string(m.Blocks); m.BotID != "" && strings.Contains(text, words) {
				return true
			}
		}
		return false
	})
	if err != nil {
		w.Fatalf("wait for %q: %v; the thread is %+v", words, err, w.slack.Messages(channel, thread))
	}
	return text
}
