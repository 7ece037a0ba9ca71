package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

func TestOpenFindsItsStatus(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	first, second := w.task(""), w.task("")
	w.open(w.source, first)
	w.open(w.source, first)
	w.open(w.process(Config{}), first)
	w.open(w.source, second)
	equal(t, "status", w.status(first), "⏳ On it…")
	equal(t, "status of another task", w.status(second), "⏳ On it…")
	equal(t, "thread", w.posted(first)[0].ThreadTS, mustOrigin(t, first).TS)
	equal(t, "posts", len(w.Calls("chat.postMessage")), 2)
}

// A status message is best effort: without it a task is still answered.
func TestWithoutStatus(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*workspace){
		"not found": func(w *workspace) {
			w.Fail("conversations.replies", slackfake.Failure{Error: "internal_error"})
		},
		"not posted": func(w *workspace) { w.Fail("chat.postMessage", slackfake.Failure{Status: 500}) },
		"unknown":    func(w *workspace) { w.Fail("auth.test", slackfake.Failure{Status: 500}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := make(chan time.Time, 1)
			now <- time.Unix(1_700_000_000, 0)
			w := newWorkspace(t, Config{Now: func() time.Time { n := <-now; now <- n.Add(errorLife); return n }})
			task := w.task("")
			fail(w)
			r := w.open(w.source, task)
			r.Update(agent.Event{Kind: agent.Started})
			if err := r.Close(t.Context(), answered("yes")); err != nil {
				t.Fatal(err)
			}
			equal(t, "parts", partsOf(w.posted(task)), []string{"final/1"})
			if !strings.Contains(w.log.String(), "report without status") {
				t.Errorf("log: %s", w.log)
			}
		})
	}
}

// A status message whose response was lost exists, and ends like any other.
func TestStatusWithLostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	w.Fail("chat.postMessage", slackfake.Failure{After: true})
	if err := w.open(w.source, task).Close(t.Context(), answered("yes")); err != nil {
		t.Fatal(err)
	}
	equal(t, "status", w.status(task), "✅ Done (2m5s)")
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
}

func TestUpdateNeverWaits(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{Interval: time.Millisecond})
	task := w.task("")
	held := make(chan struct{})
	w.Fail("chat.update", slackfake.Failure{Hold: held})
	r := w.open(w.source, task)
	for i := range 1000 {
		r.Update(agent.Event{Kind: agent.ToolUse, Text: fmt.Sprint("Step ", i)})
	}
	w.until("the edit that hangs", func() bool { return len(w.Calls("chat.update")) == 1 })
	r.Update(agent.Event{Kind: agent.ToolUse, Text: "Last step"})
	close(held)
	w.until("the latest", func() bool { return w.status(task) == "⏳ Working: last step" })
	if n := len(w.Calls("chat.update")); n != 2 {
		t.Errorf("%d edits", n)
	}
}

// The last edit is the last, even if another is under way; failures of edits do not matter.
func TestCloseEndsTheStatus(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{Interval: time.Millisecond})
	task := w.task("")
	held := make(chan struct{})
	w.Fail("chat.update", slackfake.Failure{Hold: held})
	r := w.open(w.source, task)
	r.Update(agent.Event{Kind: agent.ToolUse, Text: "Step"})
	w.until("the edit that hangs", func() bool { return len(w.Calls("chat.update")) == 1 })
	early, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Close(early, answered("yes")); err == nil {
		t.Error("closed beside an edit")
	}
	closed := make(chan error, 1)
	go func() { closed <- r.Close(t.Context(), answered("yes")) }()
	close(held)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	equal(t, "status", w.status(task), "✅ Done (2m5s)")
	r.Update(agent.Event{Kind: agent.ToolUse, Text: "Late step"})
	equal(t, "edits", len(w.Calls("chat.update")), 2)

	task = w.task("")
	r = w.open(w.source, task)
	w.Fail("chat.update", slackfake.Failure{Times: -1, Error: "internal_error"})
	w.Fail("reactions.remove", slackfake.Failure{Error: "internal_error"})
	if err := r.Close(t.Context(), answered("yes")); err != nil {
		t.Error(err)
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
}

func TestTheLastEditMayComeTwice(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	r := w.open(w.source, task)
	w.Fail("chat.update", slackfake.Failure{Status: 429})
	if err := r.Close(t.Context(), answered("yes")); err != nil {
		t.Error(err)
	}
	equal(t, "status", w.status(task), "✅ Done (2m5s)")

	task = w.task("")
	r = w.open(w.source, task)
	w.Fail("chat.update", slackfake.Failure{RetryAfter: 3600})
	if err := r.Close(t.Context(), answered("yes")); err != nil { // it does not wait for an hour
		t.Error(err)
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
}

func TestEditsThatFailAreSaidOnce(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{Interval: time.Millisecond})
	w.Fail("chat.update", slackfake.Failure{Times: 2, Error: "internal_error"})
	task := w.task("")
	r := w.open(w.source, task)
	for _, step := range []string{"one", "two", "three"} {
		r.Update(agent.Event{Kind: agent.ToolUse, Text: step})
		w.until(step, func() bool {
			calls := w.Calls("chat.update")
			return len(calls) > 0 && strings.HasSuffix(calls[len(calls)-1].Form.Get("text"), step)
		})
	}
	equal(t, "status", w.status(task), "⏳ Working: three")
	if n := strings.Count(w.log.String(), "show progress"); n != 1 {
		t.Errorf("said %d times: %s", n, w.log)
	}
}

func TestReportEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	rep, err := w.source.Open(ctx, w.task(""))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	r, _ := rep.(*report)
	<-r.done
}

// Whatever interrupts an attempt to close, and in whichever process the next attempt is made, every part is posted
// once, in order.
func TestCloseGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	lost, refused := slackfake.Failure{After: true}, slackfake.Failure{Error: "internal_error"}
	unfit := slackfake.Failure{Error: "msg_blocks_too_long"}
	all := []string{"status", "final/1", "final/2", "final/3", "final/4"}
	for name, tc := range map[string]struct {
		failures []slackfake.Failure // of the posts, status included; nil ones succeed
		attempts int
		parts    []string
	}{
		"nothing":       {nil, 1, all},
		"first refused": {[]slackfake.Failure{{Hold: free}, refused}, 2, all},
		"first lost":    {[]slackfake.Failure{{Hold: free}, lost}, 2, all},
		"second lost":   {[]slackfake.Failure{{Hold: free}, {Hold: free}, lost}, 2, all},
		"each lost":     {[]slackfake.Failure{{Hold: free}, lost, lost, lost, lost}, 5, all},
		"too many": {
			[]slackfake.Failure{{Hold: free}, {RetryAfter: 1}, {Hold: free}, {RetryAfter: 1}}, 3, all,
		},
		"a server's error":    {[]slackfake.Failure{{Hold: free}, {Status: 503}}, 2, all},
		"plain text":          {[]slackfake.Failure{{Hold: free}, unfit}, 1, plainFirst},
		"plain text, too big": {[]slackfake.Failure{{Hold: free}, {Error: "msg_too_long"}}, 1, plainFirst},
		"plain text, lost": {
			[]slackfake.Failure{{Hold: free}, unfit, {Hold: free}, lost, lost, refused}, 4, plainFirst,
		},
		"plain text, refused": {[]slackfake.Failure{{Hold: free}, unfit, {Hold: free}, refused}, 2, plainFirst},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, Config{})
			task := w.task("")
			for _, f := range tc.failures {
				w.Fail("chat.postMessage", f)
			}
			attempts := 0
			for attempts < 10 {
				attempts++
				if err := w.open(w.process(Config{}), task).Close(t.Context(), answered(longAnswer())); err == nil {
					break
				}
			}
			equal(t, "attempts", attempts, tc.attempts)
			equal(t, "parts", partsOf(w.posted(task)), tc.parts)
			equal(t, "status", w.status(task), "✅ Done (2m5s)")

			// And again, as if it had never been recorded as done.
			if err := w.open(w.process(Config{}), task).Close(t.Context(), answered(longAnswer())); err != nil {
				t.Error(err)
			}
			equal(t, "parts in the end", partsOf(w.posted(task)), tc.parts)
		})
	}
}

var plainFirst = []string{"status", "final/1.1", "final/1.2", "final/1.3", "final/1.4", "final/2", "final/3", "final/4"}

// free is a Hold that is already closed: a failure with nothing else changes nothing.
var free = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// A task that was retried ends again, below its earlier messages.
func TestASecondEndingIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	failed := tasks.Ending{Kind: tasks.Failed, Reason: "No.", At: answered("").At.Add(-time.Minute)}
	again := answered("Yes.")
	again.Retried = failed.At.Add(time.Second)
	forgotten := answered("Yes, once more.")
	forgotten.At, forgotten.Retried = again.At.Add(time.Minute), again.Retried // Redis has lost the earlier ending
	for _, e := range []tasks.Ending{failed, failed, again, again, forgotten} {
		if err := w.open(w.source, task).Close(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1", "final/1"})
	equal(t, "status", w.status(task), "✅ Done (2m5s)")
}

// A thread may contain the reports of many tasks.
func TestAnotherTasksReportIsNotOurs(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	first := w.task("")
	second := w.task(mustOrigin(t, first).TS)
	for _, task := range []tasks.Task{second, first} {
		if err := w.open(w.source, task).Close(t.Context(), answered("yes")); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "parts", partsOf(w.posted(first)), []string{"status", "final/1", "status", "final/1"})
}

// Another errand in the channel has the same task if both were mentioned.
func TestAnotherBotsReportIsNotOurs(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	root := mustOrigin(t, task).TS
	final := render.FinalMarker(task, answered("yes"))
	final.Part += "/1"
	for _, m := range []render.Marker{render.StatusMarker(task), final} {
		w.seed(slackfake.Message{
			User: "U0OTHER", BotID: "B0OTHER", Text: "theirs", ThreadTS: root,
			Metadata: []byte(fmt.Sprintf(`{"event_type":"errand_task","event_payload":{"task":%q,"part":%q,"ending":%q}}`, m.Task, m.Part, m.Ending)),
		})
	}
	if err := w.open(w.source, task).Close(t.Context(), answered("yes")); err != nil {
		t.Fatal(err)
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
	equal(t, "status", w.status(task), "✅ Done (2m5s)")
}

// A message that can never be posted is given up and logged.
func TestNowhereToPost(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"is_archived", "channel_not_found", "not_in_channel"} {
		w := newWorkspace(t, Config{})
		task := w.task("")
		r := w.open(w.source, task)
		w.Fail("chat.postMessage", slackfake.Failure{Error: code})
		if err := r.Close(t.Context(), answered("yes")); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		if !strings.Contains(w.log.String(), code) {
			t.Errorf("log: %s", w.log)
		}
	}

	// Slack would post a reply to a deleted message at the top of the channel.
	w := newWorkspace(t, Config{})
	task := origin{Team: team, Channel: general, TS: "1600000000.000001", User: ann}.task("x")
	if err := w.open(w.source, task).Close(t.Context(), answered("yes")); err != nil {
		t.Error(err)
	}
	equal(t, "messages", len(w.Messages(general, "")), 0)
	if slices.ContainsFunc(w.Calls(""), func(c slackfake.Call) bool { return strings.HasPrefix(c.Method, "chat.") }) {
		t.Errorf("calls: %+v", w.Calls(""))
	}

	// Other errors may be temporary.
	w = newWorkspace(t, Config{})
	task = w.task("")
	r := w.open(w.source, task)
	w.Fail("conversations.replies", slackfake.Failure{Error: "internal_error"})
	if err := r.Close(t.Context(), answered("yes")); err == nil {
		t.Error("it was closed without a look at what is there")
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"status"})
}

// An app that may write but not read still posts its final message.
func TestCloseWithoutTheRightToRead(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	w.Fail("conversations.replies", slackfake.Failure{Error: "missing_scope", Times: -1})
	r := w.open(w.source, task)
	if err := r.Close(t.Context(), answered("Forty-two.")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.log.String(), "channels:history") {
		t.Errorf("log: %s", w.log)
	}
	w.Heal("conversations.replies")
	said := w.posted(task)
	if len(said) == 0 || !strings.Contains(said[len(said)-1].Text, "Forty-two.") {
		t.Errorf("thread: %+v", said)
	}
}

// The queue waits for Slack's limits.
func TestCloseIsToldWhenToComeBack(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	r := w.open(w.source, w.task(""))
	w.Fail("chat.postMessage", slackfake.Failure{RetryAfter: 30})
	err := r.Close(t.Context(), answered("Forty-two."))
	if wait, ok := errors.AsType[*tasks.ErrLater](err); !ok || time.Until(wait.At) < 20*time.Second {
		t.Errorf("err = %v, want one that asks for 30 s", err)
	}
}

// If Slack is called too often, it says when an earlier message can be looked up: the task waits until then.
func TestLimitedRecallSaysWhen(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	w.Fail("conversations.replies", slackfake.Failure{RetryAfter: 3600})
	_, err := w.source.Final(t.Context(), task, time.Time{})
	if wait, ok := errors.AsType[*tasks.ErrLater](err); !ok || time.Until(wait.At) < 30*time.Minute {
		t.Errorf("final: %v", err)
	}
}
