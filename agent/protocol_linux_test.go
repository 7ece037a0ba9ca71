package agent

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// script lets the fake CLI write these lines in its turn.
func script(lines ...string) Message { return Message{Text: strings.Join(lines, "\n"), Composed: true} }

const scripted = `{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}`

// seen are the events of a scripted turn without those that every turn has.
func seen(h *host) []Event {
	var events []Event
	for _, e := range h.events {
		if e.Kind != Started && e.Kind != Taken && e.Kind != TurnEnd {
			events = append(events, e)
		}
	}
	return events
}

// A tool call should be reported while it is written, and once when it is complete: from its own line, or from its
// pieces if that is missing.
func TestToolCallsAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	piece := func(event string) string { return `{"type":"stream_event","event":` + event + `}` }
	start := piece(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}`)
	pieces := []string{
		piece(`{"type":"message_start","message":{"id":"m1"}}`), start,
		piece(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}`),
		piece(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"make\"}"}}`),
	}
	stop := piece(`{"type":"content_block_stop","index":1}`)
	whole := `{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}]}}`
	back := `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"built"}]}}`
	want := []Event{
		{Kind: ToolInput, Tool: "Bash", ToolID: "t1"},
		{Kind: ToolInput, Tool: "Bash", ToolID: "t1", Text: `{"command":`},
		{Kind: ToolInput, Tool: "Bash", ToolID: "t1", Text: `"make"}`},
		{Kind: ToolUse, Tool: "Bash", ToolID: "t1", Text: "Running make", Input: json.RawMessage(`{"command":"make"}`)},
		{Kind: ToolResult, ToolID: "t1", Text: "built"},
	}
	for name, order := range map[string][]string{
		"whole before the end":  append(append([]string{}, pieces...), whole, stop, back),
		"result before the end": append(append([]string{}, pieces...), whole, back, stop),
		"whole is missing":      append(append([]string{}, pieces...), stop, back),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &host{}
			newBench(t, "script").run(t, t.Context(), Spec{Prompt: script(append(order, scripted)...)}, h)
			if diff := cmp.Diff(want, seen(h), cmpopts.IgnoreFields(Event{}, "Time")); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("pieces that are no input", func(t *testing.T) {
		t.Parallel()
		h := &host{}
		newBench(t, "script").run(t, t.Context(), Spec{Prompt: script(append(pieces[:3:3], stop, scripted)...)}, h)
		if diff := cmp.Diff(want[:2], seen(h), cmpopts.IgnoreFields(Event{}, "Time")); diff != "" {
			t.Error(diff)
		}
	})
}

// Events of sub-agents should be marked, and their text should not be in the answer.
func TestSubAgentsAreToldApart(t *testing.T) {
	t.Parallel()
	h := &host{}
	res := newBench(t, "script").run(t, t.Context(), Spec{Prompt: script(
		`{"type":"assistant","parent_tool_use_id":"t0","subagent_type":"reviewer","message":{"id":"m1","content":[{"type":"text","text":"sub says"}]}}`,
		`{"type":"assistant","parent_tool_use_id":"t0","subagent_type":"reviewer","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/x"}}]}}`,
		`{"type":"user","parent_tool_use_id":"t0","subagent_type":"reviewer","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"y"}]}}`,
		scripted,
	)}, h)
	if res.Text != "done" {
		t.Errorf("text = %q", res.Text)
	}
	for _, e := range seen(h) {
		if e.Parent != "t0" || e.Agent != "reviewer" {
			t.Errorf("event of the sub-agent: %+v", e)
		}
	}
}

// Unknown kinds of lines and tools should be counted, with one notice for each kind.
func TestUnknownLinesAreNotedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "script")
	const tool = `{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Novelty","input":{}}]}}`
	res := b.run(t, t.Context(), Spec{ID: unique("unknown"), Prompt: script(
		`{"type":"system","subtype":"brand_new"}`, `{"type":"system","subtype":"brand_new"}`,
		`{"type":"novelty"}`, tool, tool, strings.Replace(tool, "Novelty", "mcp__x__y", 1), scripted,
	)}, &host{})
	if diff := cmp.Diff(map[string]int{"system/brand_new": 2, "novelty": 1, "tool:Novelty": 2}, res.Resources.Unknown); diff != "" {
		t.Error(diff)
	}
	for _, kind := range []string{"system/brand_new", "tool:Novelty"} {
		if n := strings.Count(b.read(t, "unknown", ".log"), "something unknown: "+kind); n != 1 {
			t.Errorf("%s is noted %d times", kind, n)
		}
	}
}

// A session that is idle with a message on its way in is not at rest: the message gets its answer in this run.
func TestRestWaitsForWhatWasSent(t *testing.T) {
	t.Parallel()
	h := &host{next: []Message{{Text: "two"}}}
	res := newBench(t, "late").run(t, t.Context(), Spec{}, h)
	if res.Text != "one\n\necho: two" || h.idled != 1 {
		t.Errorf("text %q, asked for more %d times", res.Text, h.idled)
	}
}

// A background task should keep the session from being idle until the agent has its result.
func TestRestWaitsForTheBackground(t *testing.T) {
	t.Parallel()
	h := &host{}
	res := newBench(t, "script").run(t, t.Context(), Spec{Prompt: script(
		`{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"a"},{"task_id":"b"}]}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"started it","session_id":"s"}`,
		`{"type":"system","subtype":"session_state_changed","state":"idle"}`,
		`{"type":"system","subtype":"background_tasks_changed","tasks":[]}`,
		`{"type":"system","subtype":"init","session_id":"s"}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"it is done","session_id":"s"}`,
	)}, h)
	if res.Text != "started it\n\nit is done" || h.idled != 1 {
		t.Errorf("text %q, asked for more %d times", res.Text, h.idled)
	}
}

// A CLI that does not even answer a ping is stalled now, whatever patience there is for silence.
func TestUnansweredPingIsAStall(t *testing.T) {
	t.Parallel()
	b := newBench(t, "freeze")
	b.pingAfter, b.pingLimit = time.Millisecond, 50*time.Millisecond
	if res := b.run(t, t.Context(), Spec{IdleLimit: time.Hour}, &host{}); res.Outcome != Stalled {
		t.Errorf("result = %+v", res)
	}
}

// Nor does one that has closed its ears outlast a ping, and pinging it is not all that is done.
func TestPingThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, "closed-ears")
	b.pingAfter, b.pingLimit = 10*time.Millisecond, time.Second // the first one may be written and not answered
	if res := b.run(t, t.Context(), Spec{IdleLimit: time.Hour, Limit: time.Minute}, &host{}); res.Outcome == Limit ||
		res.Outcome == Done {
		t.Errorf("result = %+v", res)
	}
}

// A message that is taken up while the host is being asked for more is answered, although the host then has no more.
func TestMessageWhileTheHostIsAsked(t *testing.T) {
	t.Parallel()
	asked, taken := make(chan struct{}), make(chan struct{})
	h := &host{}
	h.on = func(e Event) {
		if e.Kind == Text && strings.Contains(e.Text, "begun") {
			close(taken)
		}
	}
	h.hand = func(ctx context.Context) (Message, bool) {
		wait := asked
		asked = nil
		select {
		case <-wait:
			return Message{Text: "two"}, true
		case <-ctx.Done():
			return Message{}, false
		}
	}
	first := asked
	h.rests = func() {
		if h.idled == 1 {
			close(first)
			<-taken
		}
	}
	b := newBench(t, "again")
	b.pingAfter = 500 * time.Millisecond // wakes the CLI of this test
	if res := b.run(t, t.Context(), Spec{Prompt: Message{Text: "one"}}, h); res.Text != "echo: one\n\ntwo" {
		t.Errorf("%+v", res)
	}
}

// Answers to pings prove the process, not the agent: silence stays silence.
func TestAnsweredPingsAreNoActivity(t *testing.T) {
	t.Parallel()
	b := newBench(t, "hang")
	b.pingAfter = time.Millisecond
	if res := b.run(t, t.Context(), Spec{IdleLimit: 300 * time.Millisecond}, &host{}); res.Outcome != Stalled {
		t.Errorf("result = %+v", res)
	}
}

// An agent that answers in words where an object was asked for is reminded once; then its words have to do.
func TestStructuredAnswerIsAskedForOnce(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"structured-willing": `{"grade":7}`, "structured-stubborn": ""} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h := &host{}
			res := newBench(t, mode).run(t, t.Context(), Spec{Schema: json.RawMessage(`{}`)}, h)
			if string(res.Structured) != want || res.Outcome != Done || res.Text != "hello" || h.idled != 1 {
				t.Errorf("structured %s, idle asked %d times, %+v", res.Structured, h.idled, res)
			}
			turns := slices.DeleteFunc(h.events, func(e Event) bool { return e.Kind != TurnEnd })
			if len(turns) != 2 || turns[1].Text != schemaReminder {
				t.Errorf("reminded in %+v", turns)
			}
		})
	}
}

// Processes are identified by the ID of their run, so only one run of an ID is allowed at a time, also with another
// Runner or in another process.
func TestSecondRunOfAnIDIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ask")
	spec := Spec{ID: unique("twice"), Dir: b.dir, Prompt: Message{Text: "x"}, Profile: Write, Rules: askAll}
	h := &host{asked: func(ctx context.Context) {
		if _, err := b.Run(ctx, spec, &host{}); err == nil || !strings.Contains(err.Error(), "already active") {
			t.Errorf("a second run: %v", err)
		}
		other := newBench(t, "talk", func(c *Config) { c.LogDir = b.cfg.LogDir })
		if _, err := other.Run(ctx, spec, &host{}); err == nil || !strings.Contains(err.Error(), "is active") {
			t.Errorf("a second run of another Runner: %v", err)
		}
		claimed := spec
		claimed.Claimed = true
		if res, err := other.Run(ctx, claimed, &host{}); err != nil || res.Outcome != Done {
			t.Errorf("a run that nobody else has: %+v, %v", res, err)
		}
	}}
	b.run(t, t.Context(), spec, h)
	b.run(t, t.Context(), spec, &host{asked: func(context.Context) {}}) // its ID is free again
}

// A structured answer should stay, regardless of later text, redacted and valid JSON.
func TestStructuredAnswerStands(t *testing.T) {
	t.Parallel()
	b := newBench(t, "script", func(c *Config) { c.Redactor = NewRedactor(`"quoted"`) })
	for key, want := range map[string]string{"grade": `{"grade":7}`, "quoted": `"[redacted]"`} {
		res := b.run(t, t.Context(), Spec{Schema: json.RawMessage(`{}`), Prompt: script(
			`{"type":"result","subtype":"success","is_error":false,"result":"7","structured_output":{"`+key+`":7},"session_id":"s"}`, scripted,
		)}, &host{})
		if string(res.Structured) != want {
			t.Errorf("structured %s", res.Structured)
		}
	}
}

func TestPromptsThatAreForTheTerminal(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"fix the test": true, "/review 12": true, "@agent-reviewer look": true, "look at /clear": true,
		"/clearly": true, "//clear": true,
		"/clear": false, " /model haiku": false, "/compact\nnow": false,
	} {
		if err := CheckPrompt(text); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "/") {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := newBench(t, "talk").Run(t.Context(), Spec{
		ID: "x", Dir: "/", Prompt: Message{Text: "/clear"}, Profile: Read,
	}, &host{})
	if e, ok := err.(*Error); !ok || e.Class != ClassInput || !strings.HasPrefix(e.User, "/clear is a terminal command") { //nolint:errorlint // Run's error is an *Error
		t.Errorf("Run: %v", err)
	}
	// Put together from outside it is text, and what a host hands over at a bad time does not end the run.
	h := &host{more: []Message{{Text: "/clear"}, {Text: "again"}}}
	res := newBench(t, "talk").run(t, t.Context(), Spec{Prompt: Message{Text: "/clear", Composed: true}}, h)
	if res.Text != "echo: /clear\n\necho: again" {
		t.Errorf("text = %q", res.Text)
	}
}

// Whatever a message holds, the CLI gets a user message with a role: without one it dies.
func TestEveryMessageHasARole(t *testing.T) {
	t.Parallel()
	for _, m := range []Message{
		{Text: "bare"},
		{Files: []File{{Name: "a.png", Type: "image/png", Data: []byte{1}}}},
		{Text: "x", Files: []File{
			{Name: "b.txt", Data: []byte("text")},
			{Name: "c.bin", Data: []byte{0xff}},
			{Name: "d.pdf", Type: "application/pdf"},
		}},
		flatten([]Turn{{Role: User, Text: "hi"}, {Role: Assistant, Text: "yes"}}),
	} {
		raw, err := json.Marshal(m.line(true, callable{}))
		if err != nil {
			t.Fatal(err)
		}
		var l struct {
			Type    string
			Message struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &l); err != nil || l.Type != "user" || l.Message.Role != "user" ||
			len(l.Message.Content) < 3 {
			t.Errorf("%s: %v", raw, err)
		}
	}
	h := flatten([]Turn{{Role: User, Text: "hi"}, {Role: Assistant, Text: "yes"}})
	if !strings.Contains(h.Text, "USER: hi\n\nASSISTANT: yes\n\n") {
		t.Errorf("flattened: %s", h.Text)
	}
}

// What a run learns of a secret that a message cut is hidden in all that the run shows and returns, and not in others.
func TestARunLearnsPartsOfSecrets(t *testing.T) {
	t.Parallel()
	const begin, rest = "kq7-Zw93vR", "_x2Lm8-Qy5T"
	said := func(id, text string) string {
		return `{"type":"assistant","parent_tool_use_id":"` + id + `","message":{"id":"` + text +
			`","content":[{"type":"text","text":"` + text + `"}]}}`
	}
	result := strings.Replace(scripted, "done", "It said "+rest, 1)
	b := newBench(t, "script", func(c *Config) { c.Redactor = NewRedactor(begin + rest) })
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"learns", []string{said("t1", begin), said("t1", rest), result}, "It said [redacted]"},
		{"other", []string{said("t1", rest), result}, "It said " + rest},
	} {
		h, id := &host{}, unique("learn-"+c.name)
		res := b.run(t, t.Context(), Spec{ID: id, Prompt: script(c.lines...)}, h)
		if res.Text != c.want {
			t.Errorf("%s: %q", c.name, res.Text)
		}
		raw, err := os.ReadFile(b.logPath(id, ".ndjson"))
		if err != nil || strings.Contains(string(raw), rest) != strings.Contains(c.want, rest) {
			t.Errorf("%s: %s, %v", c.name, raw, err)
		}
	}
}
