package main

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// A mention gets its answer without any address that Slack could reach.
func TestMentionBySocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("what is", modelfake.Turn{Text: "It is 42."})
	delete(w.env, "SLACK_SIGNING_SECRET")
	w.env["SLACK_APP_TOKEN"] = "xapp-test"
	base := w.standalone()
	w.slack.Deliver("")
	ctx := await.Context(t)
	until := func(what string, done func(*slackfake.Server) bool) {
		t.Helper()
		if err := w.slack.Wait(ctx, done); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	until("the connection", func(s *slackfake.Server) bool { return s.Sockets() == 1 })
	ts, err := w.slack.Mention(ctx, slackfake.Message{Channel: channel, User: "U0ANN", Text: "what is the answer?"})
	if err != nil {
		t.Fatal(err)
	}
	until("the answer", func(s *slackfake.Server) bool {
		thread := s.Messages(channel, ts)
		return strings.Contains(thread[len(thread)-1].Text, "It is 42.")
	})
	if health := w.get(base + "/api/health"); !strings.Contains(health, `"name": "slack"`) ||
		!strings.Contains(health, `"last_event"`) {
		t.Errorf("the health does not mention Slack: %s", health)
	}
}
