package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// outline is a timeline in short, a line per entry.
func outline(list []*entry, indent string) (lines []string) {
	for _, e := range list {
		line := indent + e.Kind + " " + e.Text
		if e.Done {
			line += " = " + e.Back
		}
		if e.Error {
			line += " !"
		}
		lines = append(lines, line)
		lines = append(lines, outline(e.Below, indent+"  ")...)
	}
	return lines
}

// A tool call and what came back are one entry, sub-agents stand below what began them, and pieces of text are joined, each with its own.
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
		tl.add(tasks.Logged{Event: e})
	}
	want := []string{
		"started opus", "thinking Hmm.",
		"tool_use Asking a sub-agent = It is done.", "  text I am.", "  tool_use Running true = no !",
		"tool_use Asking another", "  text You are.",
		"tool_result What an earlier call brought = old", "turn_end It broke. !",
	}
	if diff := cmp.Diff(want, outline(tl.Entries, "")); diff != "" {
		t.Error(diff)
	}
	if tl.Used.Event.CostUSD != 0.5 {
		t.Errorf("used %+v", tl.Used)
	}
}

// However deep sub-agents go, the page does not.
func TestTimelineHasADepth(t *testing.T) {
	t.Parallel()
	tl := newTimeline()
	for n := range 50 {
		tl.add(tasks.Logged{Event: agent.Event{Kind: agent.ToolUse, ToolID: fmt.Sprint(n), Parent: fmt.Sprint(n - 1), Text: "x"}})
	}
	deepest := 0
	for _, line := range outline(tl.Entries, "") {
		deepest = max(deepest, strings.Count(line, "  "))
	}
	if deepest != maxDepth {
		t.Errorf("the page is %d deep, want %d", deepest, maxDepth)
	}
}

func TestLegible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\tb\r\nc":                       "a\tb\nc",
		"\x1b[31mred\x1b[0m \x1b]0;t\a":   "red ",
		"bell \a, nul \x00, del \x7f":     `bell \x07, nul \x00, del \x7f`,
		"safe\u202eexe.txt \u2066 \u0085": `safe\u202eexe.txt \u2066 \x85`,
		"naïve שלום 🙂":                    "naïve שלום 🙂",
	} {
		if got := legible.Text(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		``:                                    "",
		`{"command":"ls\npwd","timeout":5}`:   "command: \nls\npwd\ntimeout: 5",
		`{"path":"a<b>","edits":[{"a":"b"}]}`: `path: a<b>` + "\n" + `edits: [{"a":"b"}]`,
		`["x"]`:                               `["x"]`,
		`{"cut`:                               `{"cut`,
	} {
		if got := spelled(json.RawMessage(in)); got != want {
			t.Errorf("input %s is shown as %q, want %q", in, got, want)
		}
	}
}

var olderLink = regexp.MustCompile(`id="older" href="([^"]+)"`)

// older is where a page says that the older events are; empty: nowhere.
func older(a answer) string {
	if m := olderLink.FindStringSubmatch(a.text); m != nil {
		return strings.ReplaceAll(m[1], "&amp;", "&")
	}
	return ""
}

// A page shows the latest events and pages back to the first, each once, and from there into the log, as far as that is older.
func TestOlderEventsThenTheLog(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	h.Append(c, agent.Event{Kind: agent.Text, Text: "call -1.", Time: time.Date(2026, 11, 2, 0, 0, 1, 0, time.UTC)})
	for n := range pageEvents + 1 {
		h.Append(c, agent.Event{Kind: agent.ToolUse, ToolID: fmt.Sprint(n), Text: fmt.Sprintf("call %d.", n)})
	}
	log := "# errand x\n# started 2026-11-01T23:58:00Z\n23:59:00.000 the first\n"
	for n := range 2000 {
		log += fmt.Sprintf("23:59:01.000 line %d of the log <b>\n             goes on\n", n)
	}
	log += "00:00:00.500 the last\n00:00:02.000 told by the events\n"
	h.log(id+".log", log)

	a := h.get("/tasks/" + id)
	h.contains(a, http.StatusOK, "!call 0.", "call 1.", fmt.Sprintf("call %d.", pageEvents), "data-events")
	a = h.get(older(a))
	h.contains(a, http.StatusOK, "call -1.", "call 0.", "!call 1.", "!data-events")
	a = h.get(older(a))
	h.contains(a, http.StatusOK, "the last", "line 1999 of the log &lt;b&gt;", "!told by", "!the first")
	pages, shown := 1, strings.Count(a.text, "of the log")
	for older(a) != "" {
		a = h.get(older(a))
		pages, shown = pages+1, shown+strings.Count(a.text, "of the log")
	}
	if h.contains(a, http.StatusOK, "# errand x", "the first", "line 0 "); shown != 2000 || pages < 3 {
		t.Errorf("%d lines on %d pages, want 2000", shown, pages)
	}
	for _, bad := range []string{"?before=x", "/log?before=x", "/log?until=1.5"} {
		h.contains(h.get("/tasks/"+id+bad), http.StatusBadRequest)
	}
}

// The log's page reads what was kept as it reads files, and says where there is nothing.
func TestLogPageOfAKeptLog(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	h.contains(h.get("/tasks/"+id+"/log", "Accept", "text/html"), http.StatusNotFound, "<h1>No log</h1>")
	c := h.Claim(id)
	text := strings.Repeat("12:00:00.000 kept\n", 4000)
	h.keep(c, tasks.PeopleLog, text)
	h.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "ok"}})
	a, shown := h.get("/tasks/"+id+"/log"), 0
	for {
		shown += strings.Count(a.text, "kept\n")
		if older(a) == "" {
			break
		}
		a = h.get(older(a))
	}
	if shown != 4000 {
		t.Errorf("%d lines of 4000", shown)
	}
}

// What a run has used is on its page while it works and when it has ended.
func TestMeter(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	h.contains(h.get("/tasks/"+id), http.StatusOK, "data-since=", "!tokens in")
	h.Append(c, agent.Event{Kind: agent.Used, CostUSD: 0.004, Usage: &agent.Usage{Input: 900}},
		agent.Event{Kind: agent.Used, CostUSD: 0.42, Usage: &agent.Usage{Input: 200, CacheRead: 12_000, CacheCreation: 100, Output: 999}})
	h.contains(h.get("/tasks/"+id), http.StatusOK, "12.3k tokens in, 999 out", "$0.42")
	h.End(c, tasks.Ending{
		Kind: tasks.Answered, Bill: tasks.Bill{Earlier: 1},
		Result: agent.Result{Text: "ok", Duration: 62 * time.Second, CostUSD: 0.5, Usage: agent.Usage{Input: 2_000_000, Output: 1}},
	})
	h.contains(h.get("/tasks/"+id), http.StatusOK, "1m2s", "2.0M tokens in, 1 out", "$1.50", "!data-since=")
}
