package slack

import (
	"errors"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// The ephemeral messages to people without access, to people whose request is not understood, and about the state of a
// task.
func TestWordsAboutRequests(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{Pulls: somePulls, Repositories: []string{
		"acme/api", "acme/web", "other/api", "acme/slow",
	}}, slackfake.Config{
		Now: steady(), Users: []slackfake.User{{ID: "U0GUEST", Guest: true}, {ID: "U0STRANGER", TeamID: "T0OTHER"}},
	})
	o := origin{Team: team, Channel: general, TS: w.seed(slackfake.Message{Text: "x"}), User: ann}
	var said []string
	for _, row := range []struct {
		user   string
		access Access
	}{
		{"U0GUEST", Access{}},
		{"U0STRANGER", Access{}},
		{"U0STRANGER", Access{Teams: []string{team}}},
		{"U0STRANGER", Access{People: []string{ann}}},
		{"U0STRANGER", Access{Channels: []string{"C0OTHER"}}},
	} {
		err := w.process(Config{Access: row.access}).listener.interpreter.guard.check(t.Context(), who{team: team},
			event{version: version{User: row.user}, Channel: general})
		why, ok := errors.AsType[forbidden](err)
		if !ok {
			t.Errorf("%+v: %v", row, err)
		}
		said = append(said, string(why))
	}
	for _, text := range []string{
		"[size=<large>] x", "[model=opus now] x", "[branch=a..b] x", "[budget=much] x", "[timeout=soon] x",
		"[repo=none branch=dev] x", "repo=a/b/c x", "[repo=api] x", "[repo=cli] x", "[repo=none] review PR 3",
		"review PR 8 in acme/api", "fix acme/api#4", "review PR 3 in a/secret",
	} {
		_, err := w.source.listener.interpreter.request(t.Context(), message{origin: o, text: text}, tasks.Thread{})
		if input, ok := errors.AsType[*tasks.InputError](err); ok {
			said = append(said, input.Sentence)
		} else {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := w.process(Config{}).listener.interpreter.request(t.Context(),
		message{origin: o, text: "review PR 3 in acme/api"}, tasks.Thread{})
	said = append(said, err.Error())
	for _, text := range []string{"none", "cli", "a/b"} {
		err := w.source.listener.interpreter.listPulls(t.Context(), o, text, tasks.Thread{}, true)
		said = append(said, err.Error())
	}
	task := tasks.Task{Prompt: "count <!channel>\nall"}
	e := answered("42")
	for _, st := range []tasks.Status{
		{State: "waiting", Task: task, Why: "no worker is free yet"},
		{State: "waiting", Task: task, Why: "the limit is reached"},
		{State: "running", Task: task, Started: w.source.client.now().Add(-90 * time.Second)},
		{State: "running", Task: task, Questions: []tasks.Question{{}}},
		{State: "ended", Task: task, Ending: &e},
		{State: "ended", Task: task, Ending: &tasks.Ending{Kind: tasks.TimedOut}},
	} {
		said = append(said, intake.Describe(st, w.source.client.now()))
	}
	for _, sentence := range said {
		if err := w.source.client.whisper(t.Context(), o, sentence); err != nil {
			t.Fatal(err)
		}
	}
	messages(t, "requests", w.Ephemeral(general, ann))
}
