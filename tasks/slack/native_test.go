package slack

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
)

const setStatus = "assistant.threads.setStatus"

// settableClock returns a clock for Config.Now and a function that lets time pass.
func settableClock() (now func() time.Time, pass func(time.Duration)) {
	var passed atomic.Int64
	began := time.Now()
	return func() time.Time { return began.Add(time.Duration(passed.Load())) }, func(d time.Duration) {
		passed.Add(int64(d))
	}
}

// native returns the statuses that were set, in order.
func (w *workspace) native() []string {
	list := []string{}
	for _, c := range w.Calls(setStatus) {
		list = append(list, c.Form.Get("status"))
	}
	return list
}

// While a run works, Slack shows that below the thread, until the run ends.
func TestNativeStatus(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]tasks.Ending{
		"answered": answered("yes"), "withdrawn": {Kind: tasks.Withdrawn, At: time.Now()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, Config{Interval: time.Millisecond})
			task := w.task(mustOrigin(t, w.task("")).TS)
			root := mustOrigin(t, task).root()
			r := w.open(w.source, task)
			r.Update(agent.Event{Kind: agent.ToolUse, Text: "Reading secret.txt"})
			w.until("its status", func() bool { return w.ThreadStatus(general, root) == "is reading…" })
			if err := r.Close(t.Context(), end); err != nil {
				t.Fatal(err)
			}
			equal(t, "after the end", w.ThreadStatus(general, root), "")
			equal(t, "statuses", w.native(), []string{"is reading…", ""})
		})
	}
}

// A report that never showed anything there makes no call to remove it.
func TestNativeStatusUnused(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	if err := w.open(w.source, w.task("")).Close(t.Context(), answered("yes")); err != nil {
		t.Fatal(err)
	}
	equal(t, "statuses", w.native(), []string{})
}

func TestNativeWords(t *testing.T) {
	t.Parallel()
	p := newProgress(time.Now)
	equal(t, "at first", p.doing(), "is working…")
	for action, want := range map[string]string{
		"Reading a.txt": "is reading…", "Searching for x": "is searching…",
		"Running rm <!channel>": "is running a command…", "Writing a": "is editing files…",
		"Editing a": "is editing files…", "Using slack post": "is working…",
	} {
		p.add(agent.Event{Kind: agent.ToolUse, Text: action})
		equal(t, action, p.doing(), want)
	}
	p.add(agent.Event{Kind: tasks.Asked})
	equal(t, "a question", p.doing(), "")
}

// Calls are 20 s apart, and each write after that renews what Slack removes by itself.
func TestNativeStatusIsRenewed(t *testing.T) {
	t.Parallel()
	now, pass := settableClock()
	w := newWorkspace(t, Config{Now: now})
	r := w.open(w.source, w.task(""))
	for _, doing := range []string{"is reading…", "is working…", "is working…", "is searching…", "", ""} {
		r.showNative(t.Context(), doing)
		pass(10 * time.Second)
	}
	equal(t, "statuses", w.native(), []string{"is reading…", "is working…", ""})
	for range 2 {
		r.showNative(t.Context(), "is reading…")
		pass(time.Minute)
	}
	equal(t, "renewed", w.native()[3:], []string{"is reading…", "is reading…"})
}

// Where Slack does not take the status, a process asks once a day. What may pass, or concerns one thread, does not
// count.
func TestNativeStatusRefused(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		failure slackfake.Failure
		rest    time.Duration
	}{
		"no scope":      {slackfake.Failure{Error: "missing_scope"}, nativeRest},
		"old Slack":     {slackfake.Failure{Error: "unknown_method"}, nativeRest},
		"kind of token": {slackfake.Failure{Error: "not_allowed_token_type"}, nativeRest},
		"kind of place": {slackfake.Failure{Error: "channel_type_not_supported"}, nativeRest},
		"too often":     {slackfake.Failure{RetryAfter: 90}, 92 * time.Second},
		"one thread":    {slackfake.Failure{Error: "invalid_thread_ts"}, 0},
		"an accident":   {slackfake.Failure{Status: 500}, 0},
		"a cut":         {slackfake.Failure{}, 0},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			now, pass := settableClock()
			w := newWorkspace(t, Config{Now: now})
			first, second := w.open(w.source, w.task("")), w.open(w.source, w.task(""))
			w.Fail(setStatus, c.failure)
			first.showNative(t.Context(), "is reading…")
			if c.rest > 0 {
				pass(c.rest - 2*time.Second)
				first.showNative(t.Context(), "is reading…")
				second.showNative(t.Context(), "is reading…")
				equal(t, "calls meanwhile", len(w.native()), 1)
				pass(2 * time.Second)
			}
			second.showNative(t.Context(), "is reading…")
			equal(t, "calls", len(w.native()), 2)
		})
	}
}

// A status that hangs delays neither the answer nor its edits for long, and fails nothing.
func TestNativeStatusHangs(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{Interval: time.Millisecond})
	task := w.task("")
	held := make(chan struct{})
	defer close(held)
	w.Fail(setStatus, slackfake.Failure{Hold: held, Times: -1})
	r := w.open(w.source, task)
	r.Update(agent.Event{Kind: agent.ToolUse, Text: "Reading a"})
	w.until("the status that hangs", func() bool { return len(w.native()) == 1 })
	if err := r.Close(t.Context(), answered("yes")); err != nil {
		t.Fatal(err)
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
}
