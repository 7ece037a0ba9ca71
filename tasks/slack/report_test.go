package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
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
	early, cancel := context.WithCancel(t.Context())
	cancel()
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
}

// Whatever keeps the last edit or the removal of a reaction from succeeding, the outbox does it again, and the answer
// counts as posted.
func TestTheLastEditIsDoneAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*workspace){
		"a server's error": func(w *workspace) { w.Fail("chat.update", slackfake.Failure{Status: 500}) },
		"a reset":          func(w *workspace) { w.Fail("chat.update", slackfake.Failure{}) },
		"a code":           func(w *workspace) { w.Fail("chat.update", slackfake.Failure{Error: "internal_error"}) },
		"out of the room":  func(w *workspace) { w.Fail("chat.update", slackfake.Failure{Error: "not_in_channel"}) },
		"too many":         func(w *workspace) { w.Fail("chat.update", slackfake.Failure{RetryAfter: 30}) },
		"the reaction":     func(w *workspace) { w.Fail("reactions.remove", slackfake.Failure{Status: 500}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, Config{})
			task := w.task("")
			w.source.client.react(t.Context(), mustOrigin(t, task), eyes)
			r := w.open(w.source, task)
			fail(w)
			err := r.Close(t.Context(), answered("yes"))
			left, ok := errors.AsType[*tasks.UnpostedError](err)
			if !ok || !left.Shown || left.Final {
				t.Fatalf("err = %v, want one that says that only the status is left", err)
			}
			wait, later := errors.AsType[*tasks.ErrLater](err)
			if later != (name == "too many") || later && time.Until(wait.At) < 20*time.Second {
				t.Errorf("err = %v", err)
			}
			if err := w.open(w.process(Config{}), task).Close(t.Context(), answered("yes")); err != nil {
				t.Fatal(err)
			}
			equal(t, "status", w.status(task), "✅ Done (2m5s)")
			equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
			equal(t, "eyes", w.Reactions(general, mustOrigin(t, task).TS), []string(nil))
			edits := len(w.Calls("chat.update"))
			if err := w.open(w.process(Config{}), task).Close(t.Context(), answered("yes")); err != nil {
				t.Fatal(err)
			}
			equal(t, "edits of a status that has ended", len(w.Calls("chat.update")), edits)
		})
	}
}

// A deleted request has no answer that could count as not posted while its status cannot be removed.
func TestWithdrawalOutOfTheChannel(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	r := w.open(w.source, w.task(""))
	w.Change(slackfake.Channel{ID: general, Outside: true})
	err := r.Close(t.Context(), tasks.Ending{Kind: tasks.Withdrawn, At: time.Now()})
	left, ok := errors.AsType[*tasks.UnpostedError](err)
	if !ok || !left.Shown || left.Final {
		t.Errorf("err = %v, want one that says that only the status is left", err)
	}
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
	<-r.progress.writer.Done()
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

// A place that refuses the final message may take it later. Only a thread that is gone is final.
func TestNowhereToPost(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"is_archived", "channel_not_found", "not_in_channel", "restricted_action", "invalid_auth", "another_code",
	} {
		w := newWorkspace(t, Config{})
		task := w.task("")
		r := w.open(w.source, task)
		w.Fail("chat.postMessage", slackfake.Failure{Error: code, Times: -1})
		w.Fail("files.getUploadURLExternal", slackfake.Failure{Error: code, Times: -1})
		err := r.Close(t.Context(), answered("yes"))
		left, ok := errors.AsType[*tasks.UnpostedError](err)
		if !ok || left.Final || left.Shown || left.Why != "Slack says "+code {
			t.Errorf("%s: %v", code, err)
		}
		w.Heal("chat.postMessage")
		w.Heal("files.getUploadURLExternal")
		if err := r.Close(t.Context(), answered("yes")); err != nil {
			t.Errorf("%s is over: %v", code, err)
		}
		equal(t, "status", w.status(task), "✅ Done (2m5s)")
		equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
	}

	// Slack would post a reply to a deleted message at the top of the channel.
	w := newWorkspace(t, Config{})
	task := taskFrom(origin{Team: team, Channel: general, TS: "1600000000.000001", User: ann})
	left, ok := errors.AsType[*tasks.UnpostedError](w.open(w.source, task).Close(t.Context(), answered("yes")))
	if !ok || !left.Final || left.Why != "its thread does not exist any more" {
		t.Errorf("err = %+v", left)
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

// While the bot is out of the channel, the person who asked gets the final message directly, once, and not at once.
// When it is back, the thread gets it, too.
func TestOutOfTheChannel(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{Memory: newMind()})
	task := w.task("")
	r := w.open(w.source, task)
	w.Change(slackfake.Channel{ID: general, Outside: true})
	fresh := answered("Forty-two.")
	fresh.At = time.Now()
	if err := r.Close(t.Context(), fresh); err == nil {
		t.Fatal("closed")
	}
	equal(t, "direct messages at once", len(w.Messages("D"+ann[1:], "")), 0)

	e := answered("Forty-two.")
	for range 3 {
		err := r.Close(t.Context(), e)
		left, ok := errors.AsType[*tasks.UnpostedError](err)
		if !ok || left.Final ||
			left.Why != "Slack says not_in_channel; the person who asked has it as a direct message" {
			t.Errorf("err = %v", err)
		}
	}
	direct := w.Messages("D"+ann[1:], "")
	if len(direct) != 1 || !strings.Contains(direct[0].Text, "Forty-two.") ||
		!strings.Contains(direct[0].Text, "I could not post this in the thread in <#"+general+">: Slack says not_in_channel.") {
		t.Errorf("direct messages: %+v", direct)
	}
	w.Change(slackfake.Channel{ID: general})
	if err := r.Close(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	equal(t, "status", w.status(task), "✅ Done (2m5s)")
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
}

// A webhook whose channel the bot has left gets nothing directly: there is nobody to read it.
func TestWebhookGetsNoDirectMessage(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{Memory: newMind()})
	ts, err := w.Seed(slackfake.Message{Channel: general, BotID: "B0ALERTS", Text: "count"})
	if err != nil {
		t.Fatal(err)
	}
	r := w.open(w.source, taskFrom(origin{Team: team, Channel: general, TS: ts, User: "B0ALERTS"}))
	w.Change(slackfake.Channel{ID: general, Outside: true})
	left, ok := errors.AsType[*tasks.UnpostedError](r.Close(t.Context(), answered("Forty-two.")))
	if !ok || left.Final || left.Why != "Slack says not_in_channel" {
		t.Errorf("err = %v", left)
	}
	for _, call := range w.Calls("chat.postMessage") {
		equal(t, "channel", call.Form.Get("channel"), general)
	}
}

// forgetful is a Memory that does not take the first change.
type forgetful struct {
	*mind
	changes atomic.Int64
}

func (m *forgetful) ChangeMemo(
	ctx context.Context, name string, change func(json.RawMessage) (json.RawMessage, error),
) error {
	if m.changes.Add(1) == 1 {
		return errors.New("connection lost")
	}
	return m.mind.ChangeMemo(ctx, name, change)
}

// A direct message that cannot be recorded is not sent, so that a crash after it does not send it twice. One that Slack
// refused is sent later.
func TestDirectMessageIsRecordedFirst(t *testing.T) {
	t.Parallel()
	for name, refusals := range map[string]int{"not recorded": 0, "refused": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Memory: &forgetful{mind: newMind()}}
			if refusals > 0 {
				cfg.Memory = newMind()
			}
			w := newWorkspace(t, cfg)
			task := w.task("")
			r := w.open(w.source, task)
			w.Change(slackfake.Channel{ID: general, Outside: true})
			if refusals > 0 {
				w.Fail("chat.postMessage", slackfake.Failure{Error: "not_in_channel", Times: refusals})
			}
			for i, want := range []int{0, 1, 1} {
				if err := r.Close(t.Context(), answered("Forty-two.")); err == nil {
					t.Fatal("closed")
				}
				equal(t, fmt.Sprint("direct messages after attempt ", i+1), len(w.Messages("D"+ann[1:], "")), want)
			}
		})
	}
}

// Whatever Slack has against blocks or text, a message is posted in a form that it takes.
func TestRefusedForms(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"invalid_attachments", "only_one_table_allowed", "invalid_arguments", "invalid_blocks", "a_code_of_next_year",
	} {
		for _, times := range []int{1, 2} {
			w := newWorkspace(t, Config{})
			task := w.task("")
			r := w.open(w.source, task)
			w.Fail("chat.postMessage", slackfake.Failure{Error: code, Times: times})
			if err := r.Close(t.Context(), answered("Forty-two.")); err != nil {
				t.Errorf("%s, %d times: %v", code, times, err)
			}
			posted := w.posted(task)
			last := posted[len(posted)-1]
			if times == 1 && (last.Blocks != nil || !strings.Contains(last.Text, "Forty-two.")) ||
				times == 2 && len(last.Files) != 1 {
				t.Errorf("%s, %d times: %+v", code, times, last)
			}
			equal(t, "status", w.status(task), "✅ Done (2m5s)")
		}
	}
}

// Slack takes one table in a message.
func TestManyTables(t *testing.T) {
	t.Parallel()
	table := "| a | b |\n|---|---|\n| 1 | %d |\n"
	for tables, want := range map[int]int{1: 1, 2: 2, 4: 4, 6: 1} {
		w := newWorkspace(t, Config{})
		task := w.task("")
		var body strings.Builder
		for i := range tables {
			fmt.Fprintf(&body, "Table %d:\n\n"+table+"\n", i, i)
		}
		if err := w.open(w.source, task).Close(t.Context(), answered(body.String()+"The end.")); err != nil {
			t.Fatal(err)
		}
		posted := w.posted(task)[1:]
		equal(t, fmt.Sprint("messages for ", tables), len(posted), want)
		all := ""
		for _, m := range posted {
			if m.Blocks == nil {
				t.Errorf("%d tables: posted without blocks", tables)
			}
			all += string(m.Blocks)
		}
		for i := range tables {
			if !strings.Contains(all, fmt.Sprintf("| 1 | %d |", i)) {
				t.Errorf("table %d of %d is lost", i, tables)
			}
		}
	}
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

// The final message of a task that Redis has forgotten is found in its thread, if it is about a later ending.
func TestFinalMessageIsFound(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task, e := w.task(""), answered("Forty-two.")
	e.Covers = []string{w.task("").ID}
	if err := w.open(w.source, task).Close(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	found, err := w.source.Final(t.Context(), task, time.Time{})
	if err != nil || found == nil || found.Kind != tasks.Answered || !slices.Equal(found.Covers, e.Covers) {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err = w.source.Final(t.Context(), task, e.At.Add(time.Hour)); err != nil || found != nil {
		t.Errorf("of a later ending: %+v, %v", found, err)
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
