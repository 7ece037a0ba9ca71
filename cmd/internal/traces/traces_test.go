package traces

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

var begun = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

// spansOf returns the spans of a task with one run that was repeated, which had these events. The request had this
// traceparent.
func spansOf(t *testing.T, parent string, events ...agent.Event) []sdk.ReadOnlySpan {
	t.Helper()
	spans := &collector{}
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithIDGenerator(identifier{}))
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
	build(context.WithValue(t.Context(), taskKey{}, task.ID), provider.Tracer("errand"),
		ended{task, tasks.Ending{Kind: tasks.Answered}, at(7)}, record, events)
	return spans.ended
}

// Spans have neither the text of notices nor why a run ended: both can contain output, errors and names.
func TestSpansHaveNoText(t *testing.T) {
	t.Parallel()
	spans := spansOf(t, "",
		agent.Event{Kind: agent.Notice, Text: "The set-up failed: hush-output"},
		agent.Event{Kind: agent.Notice, Text: "Waiting: hush-line", Tool: tasks.Waits},
		agent.Event{Kind: agent.Notice, Text: "trying again: hush", Class: agent.ClassOverloaded},
		agent.Event{Kind: agent.Text, Text: "hush-answer"},
		agent.Event{
			Kind: agent.ToolUse, Tool: "Bash", ToolID: "1", Text: "$ hush", Input: []byte(`{"command":"hush"}`),
		},
		agent.Event{Kind: agent.ToolResult, ToolID: "1", Text: "hush-result", Error: true},
	)
	notices := ""
	for _, s := range spans {
		for _, e := range s.Events() {
			notices += fmt.Sprintf("%s %s;", e.Name, e.Attributes[0].Value.AsString())
		}
		if text := fmt.Sprint(s.Name(), s.Attributes(), s.Events(), s.Status()); strings.Contains(text, "hush") {
			t.Errorf("a span has text: %s", text)
		}
	}
	if want := "notice ;notice waiting;notice overloaded;"; notices != want || len(spans) != 8 {
		t.Errorf("%d spans, notices %s", len(spans), notices)
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
		"":                                  {own, "0000000000000000"},
		"00-" + id + "-0000000000000000-01": {own, "0000000000000000"},
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": {own, "0000000000000000"},
	} {
		spans := spansOf(t, parent)
		root := spans[len(spans)-1]
		if got := root.Parent().SpanID().String(); root.Name() != "task chat" || got != want[1] {
			t.Errorf("%q: %s is below %s", parent, root.Name(), got)
		}
		for _, s := range spans {
			if got := s.SpanContext().TraceID().String(); got != want[0] {
				t.Errorf("%q: %s is in trace %s", parent, s.Name(), got)
			}
		}
	}
	if spans := spansOf(t, "00-"+id+"-"+span+"-00"); len(spans) != 0 {
		t.Errorf("%d spans of a trace that the caller does not record", len(spans))
	}
}
