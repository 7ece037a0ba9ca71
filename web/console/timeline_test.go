package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/google/go-cmp/cmp"
)

// outline returns a line per entry of a timeline.
func outline(list []*entry, indent string) (lines []string) {
	for _, e := range list {
		line := indent + e.Kind + " " + e.Text
		if e.Done {
			line += " = " + e.Result
		}
		if e.Error {
			line += " !"
		}
		lines = append(lines, line)
		lines = append(lines, outline(e.Below, indent+"  ")...)
	}
	return lines
}

// A tool call and its result are one entry, the entries of a sub-agent are below its call, and pieces of a text are
// joined.
func TestTimeline(t *testing.T) {
	t.Parallel()
	tl := newTimeline()
	for _, e := range []agent.Event{
		{Kind: agent.Started, Text: "opus"},
		{Kind: agent.Taken, Text: "an ID"},
		{Kind: agent.Thinking, Text: "\n\nHm"},
		{Kind: agent.Thinking, Text: "m."},
		{Kind: agent.ToolUse, ToolID: "a", Text: "Asking a sub-agent"},
		{Kind: agent.ToolUse, ToolID: "b", Text: "Asking another"},
		{Kind: agent.Text, Parent: "a", Text: "I "},
		{Kind: agent.Text, Parent: "b", Text: "You "},
		{Kind: agent.Text, Parent: "a", Text: "am."},
		{Kind: agent.Text, Parent: "b", Text: "are."},
		{Kind: agent.ToolUse, Parent: "a", ToolID: "c", Text: "Running true"},
		{Kind: agent.ToolResult, Parent: "a", ToolID: "c", Text: "no", Error: true},
		{Kind: agent.ToolResult, ToolID: "a", Text: "It is done."},
		{Kind: agent.ToolResult, ToolID: "earlier", Text: "old"},
		{Kind: agent.Used, CostUSD: 0.5},
		{Kind: agent.TurnEnd, Text: "told in pieces"},
		{Kind: agent.TurnEnd, Text: "It broke.", Error: true},
	} {
		tl.add(desk.Logged{Event: e})
	}
	want := []string{
		"started opus", "thinking Hmm.",
		"tool_use Asking a sub-agent = It is done.", "  text I am.", "  tool_use Running true = no !",
		"tool_use Asking another", "  text You are.",
		"tool_result Result of an earlier call = old",
	}
	if diff := cmp.Diff(want, outline(tl.Entries, "")); diff != "" {
		t.Error(diff)
	}
	if tl.Used.Event.CostUSD != 0.5 {
		t.Errorf("used %+v", tl.Used)
	}
}

// The page has a maximum depth, however deep sub-agents are nested.
func TestTimelineHasADepth(t *testing.T) {
	t.Parallel()
	tl := newTimeline()
	for n := range 50 {
		tl.add(desk.Logged{Event: agent.Event{
			Kind: agent.ToolUse, ToolID: fmt.Sprint(n), Parent: fmt.Sprint(n - 1), Text: "x",
		}})
	}
	deepest := 0
	for _, line := range outline(tl.Entries, "") {
		deepest = max(deepest, strings.Count(line, "  "))
	}
	if deepest != maxDepth {
		t.Errorf("the page is %d deep, want %d", deepest, maxDepth)
	}
}

func TestFormatInput(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                                    "",
		`{"command":"ls\npwd","timeout":5}`:   "command: \nls\npwd\ntimeout: 5",
		`{"path":"a<b>","edits":[{"a":"b"}]}`: `path: a<b>` + "\n" + `edits: [{"a":"b"}]`,
		`["x"]`:                               `["x"]`,
		`{"cut`:                               `{"cut`,
	} {
		if got := formatInput(json.RawMessage(in)); got != want {
			t.Errorf("input %s is shown as %q, want %q", in, got, want)
		}
	}
}
