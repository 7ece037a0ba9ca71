package traces

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

var begun = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

// spansOf returns the spans of a task with one run that was repeated, which had these events. The request had this
// traceparent.
func spansOf(parent string, events ...agent.Event) []*span {
	at := func(minutes int) time.Time { return begun.Add(time.Duration(minutes) * time.Minute) }
	for i := range events {
		events[i].Time = at(2)
	}
	task := tasks.Task{
		ID: tasks.NewID(begun, "chat", "x"), Kind: "chat", Actor: "hush-actor", Name: "hush-name", Trace: parent,
		Prompt: "hush-prompt",
	}
	record := store.Record{Created: begun, Ended: at(6), Runs: []store.Run{
		{Worker: "w-1", Started: at(1), Ended: at(3), Why: "hush-why"}, {Worker: "w-2", Started: at(4)},
	}}
	return build(ended{task, tasks.Ending{Kind: tasks.Answered}, at(7)}, record, events)
}

// Spans have neither the text of notices nor why a run ended: both can contain output, errors and names.
func TestSpansHaveNoText(t *testing.T) {
	t.Parallel()
	spans := spansOf("",
		agent.Event{Kind: agent.Notice, Text: "The set-up failed: hush-output"},
		agent.Event{Kind: agent.Notice, Text: "trying again: hush", Class: agent.ClassOverloaded},
		agent.Event{Kind: agent.Text, Text: "hush-answer"},
		agent.Event{
			Kind: agent.ToolUse, Tool: "Bash", ToolID: "1", Text: "$ hush", Input: []byte(`{"command":"hush"}`),
		},
		agent.Event{Kind: agent.ToolResult, ToolID: "1", Text: "hush-result", Error: true},
	)
	text, err := json.Marshal(spans)
	if err != nil || strings.Contains(string(text), "hush") {
		t.Errorf("a span has text: %s, %v", text, err)
	}
	var notices []any
	for _, s := range spans {
		for _, e := range s.Events {
			notices = append(notices, e["attributes"].([]object)[0]["value"].(object)["stringValue"])
		}
	}
	if want := "[ overloaded]"; fmt.Sprint(notices) != want || len(spans) != 8 {
		t.Errorf("%d spans, notices %q", len(spans), notices)
	}
}

// The spans of a task continue the trace of the request that made it. Otherwise the trace has the task's own ID, as
// without one.
func TestTraceOfTheCaller(t *testing.T) {
	t.Parallel()
	own := fmt.Sprintf("%x", tasks.TraceID(tasks.NewID(begun, "chat", "x")))
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for parent, want := range map[string][2]string{
		"00-" + id + "-" + span + "-01":     {id, span},
		"":                                  {own, ""},
		"00-" + id + "-0000000000000000-01": {own, ""},
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": {own, ""},
	} {
		spans := spansOf(parent)
		if root := spans[0]; root.Name != "task chat" || root.Parent != want[1] {
			t.Errorf("%q: %s is below %s", parent, root.Name, root.Parent)
		}
		for _, s := range spans {
			if s.TraceID != want[0] {
				t.Errorf("%q: %s is in trace %s", parent, s.Name, s.TraceID)
			}
		}
	}
	if spans := spansOf("00-" + id + "-" + span + "-00"); len(spans) != 0 {
		t.Errorf("%d spans of a trace that the caller does not record", len(spans))
	}
}

// A receiver that is overloaded gets the spans again, and one that refuses them does not.
func TestTriesAgain(t *testing.T) {
	t.Parallel()
	for answers, want := range map[[2]int]string{
		{http.StatusServiceUnavailable, http.StatusOK}:        "2 requests, <nil>",
		{http.StatusTooManyRequests, http.StatusUnauthorized}: "2 requests, send trace: the receiver answered 401 Unauthorized",
		{http.StatusBadRequest, http.StatusOK}:                "1 requests, send trace: the receiver answered 400 Bad Request",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			requests := 0
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.WriteHeader(answers[requests-1])
			}))
			defer receiver.Close()
			e := Exporter{cfg: Config{URL: receiver.URL}}
			err := e.post(t.Context(), spansOf(""))
			if got := fmt.Sprintf("%d requests, %v", requests, err); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
