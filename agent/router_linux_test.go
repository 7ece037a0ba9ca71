package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/tools"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/google/go-cmp/cmp"
)

// Most tests of this file run the real CLI, as those of other files.

// calls is an answer of the model that calls tools with one argument each: name, argument, value, and again.
func calls(words ...string) (t modelfake.Turn) {
	for c := range slices.Chunk(words, 3) {
		t.Tools = append(t.Tools, modelfake.ToolCall{Name: c[0], Input: map[string]string{c[1]: c[2]}})
	}
	return t
}

// results are the beginnings of what came back from tools, in order, the failed ones marked.
func (h *host) results() (list []string) {
	for _, e := range h.events {
		if e.Kind == ToolResult && e.Error {
			list = append(list, "failed: "+e.Text)
		} else if e.Kind == ToolResult {
			list = append(list, e.Text)
		}
	}
	return list
}

// The CLI does not ask about a read-only command or a file in its directory; a rule should still apply, in a sub-agent
// too. The agent should get the rule's reason.
func TestCLIDenyRule(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.key"), []byte("hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	model.Answer("subtask", calls("Bash", "command", "ls -l"), modelfake.Turn{Text: "nothing seen"})
	model.Answer("", calls("Bash", "command", "ls"), calls("Read", "file_path", "notes.key"),
		calls("Bash", "command", "echo fine"),
		call("Agent", "description", "look", "prompt", "subtask", "subagent_type", "general-purpose"),
		modelfake.Turn{Text: "Done."})
	h := &host{}
	res := runCLI(t, newCLI(t, model), Spec{
		ID: "deny", Dir: dir, Profile: Write, Rules: []Rule{
			{Tool: "Bash", Input: "ls*", Action: Deny, Reason: "No listing here."},
			{Tool: "read", Input: "**/*.key", Action: Deny, Reason: "No keys either."},
		},
	}, h)
	if res.Text != "Done." {
		t.Errorf("result = %+v", res)
	}
	got := h.results()
	if len(got) != 5 || !strings.Contains(got[4], "nothing seen") {
		t.Fatalf("results = %q", got)
	}
	if diff := cmp.Diff([]string{
		"failed: No listing here.", "failed: No keys either.", "fine", "failed: No listing here.",
	}, got[:4]); diff != "" {
		t.Error(diff)
	}
	if body := model.Requests()[1].Body; !strings.Contains(string(body), `"content":"No listing here."`) {
		t.Errorf("the model got no reason: %s", body)
	}
}

// Every call that a rule leaves to a person comes to them once, whether the CLI would have asked by itself or not.
// Several questions are open at once, and each answer finds its own.
func TestCLIAskRule(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	model.Answer("first", calls("Bash", "command", "ls"), calls("Bash", "command", "mkdir asked"),
		calls("Bash", "command", "mkdir refused"), modelfake.Turn{Text: "Done."})
	model.Answer("second", calls("Bash", "command", "echo a", "Bash", "command", "echo b", "Bash", "command", "echo c"),
		modelfake.Turn{Text: "Done."})
	open := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{})}
	next := map[string]string{"c": "b", "b": "a"}
	var mu sync.Mutex
	var asked []ToolRequest
	h := &host{
		more: []Message{{Text: "second"}},
		permit: func(r ToolRequest) Decision {
			mu.Lock()
			asked = append(asked, r)
			n := len(asked)
			mu.Unlock()
			switch r.Text {
			case "Running ls":
				return Decision{Allow: true}
			case "Running mkdir asked":
				return Decision{Allow: true, Input: json.RawMessage(`{"command":"mkdir changed"}`)}
			case "Running mkdir refused":
				return Decision{Reason: "Ann said no."}
			}
			if n == 6 { // all are open
				close(open["c"])
			}
			name := strings.TrimPrefix(r.Text, "Running echo ")
			<-open[name]
			return Decision{Allow: true, Input: json.RawMessage(fmt.Sprintf(`{"command":"echo %s"}`,
				strings.ToUpper(name)))}
		},
		on: func(e Event) {
			if gate, ok := open[next[strings.ToLower(e.Text)]]; ok && e.Kind == ToolResult {
				close(gate)
			}
		},
	}
	res := runCLI(t, newCLI(t, model), Spec{
		ID: "ask", Dir: dir, Prompt: Message{Text: "first"}, Profile: Write, Limit: time.Minute,
		Rules: []Rule{{Tool: "Bash", Action: Ask, Reason: "Shells need a word."}},
	}, h)
	if res.Text != "Done.\n\nDone." || len(asked) != 6 || asked[0].Reason != "Shells need a word." || asked[0].ID == "" ||
		string(asked[0].Input) != `{"command":"ls"}` {
		t.Errorf("result %+v, asked %+v", res, asked)
	}
	if got := h.results(); len(got) != 6 || got[0] != "changed" && got[0] != "(Bash completed with no output)" ||
		!slices.Equal(got[2:], []string{"failed: Ann said no.", "C", "B", "A"}) {
		t.Errorf("results = %q", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "changed" {
		t.Errorf("made %v, %v", entries, err)
	}
}

// A call that the host does should run once and only there; the agent should get the result, without secrets.
func TestCLIDelegate(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	fetch := call("WebFetch", "url", "https://example.org", "prompt", "x")
	model.Answer("", calls("Bash", "command", "mkdir made"), calls("Bash", "command", "ls"), fetch,
		modelfake.Turn{Text: "Done."})
	var did []string
	run := func(_ context.Context, r ToolRequest) (string, error) {
		did = append(did, r.Text)
		switch r.Text {
		case "Running mkdir made":
			return "made it elsewhere with sk-ant-test-credential", nil
		case "Running ls":
			return "", errors.New("no shell for sk-ant-test-credential")
		}
		return "a page", nil
	}
	h := &host{}
	res := runCLI(t, newCLI(t, model), Spec{
		ID: "delegate", Dir: dir, Profile: Write, Rules: []Rule{
			{Tool: "Bash", Action: Delegate, Run: run}, {Tool: "WebFetch", Action: Delegate, Run: run},
		},
	}, h)
	if res.Text != "Done." {
		t.Errorf("result = %+v", res)
	}
	if diff := cmp.Diff([]string{"Running mkdir made", "Running ls", "Fetching https://example.org"}, did); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"made it elsewhere with [redacted]",
		"failed: errand tried to make this call in place of the tool, and failed: no shell for [redacted]", "a page",
	}
	if diff := cmp.Diff(want, h.results()); diff != "" {
		t.Error(diff)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the tool ran as well: %v, %v", entries, err)
	}
	requests := model.Requests()
	if body := string(requests[1].Body); !strings.Contains(body, "do not repeat it") ||
		!strings.Contains(body, "made it elsewhere with [redacted]") {
		t.Errorf("the model does not know the result: %s", body)
	}
	if len(requests) != 4 {
		t.Fatalf("%d requests", len(requests))
	}
	if body := string(requests[2].Body); !strings.Contains(body, "no shell for [redacted]") {
		t.Errorf("the model does not know the error, or a secret: %s", body)
	}
}

// Where rules are, the agent still has the tools it was given for its profile, and the form of its answer; what a
// profile has not, no rule gives it.
func TestCLIRulesAndServers(t *testing.T) {
	t.Parallel()
	model := newModel(t, calls("mcp__errand__note", "text", "hello"), calls("Bash", "command", "ls"),
		modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "StructuredOutput", Input: map[string]any{"grade": 7}}}})
	type in struct {
		Text string `json:"text"`
	}
	note := NewTool("note", "Takes a note.", func(_ context.Context, in in) (string, error) {
		return "noted " + in.Text, nil
	})
	h, r := &host{}, newCLI(t, model)
	res := runCLI(t, r, Spec{
		ID: "servers", Profile: Untrusted, Tools: []Tool{note}, Effort: "high",
		Rules:  []Rule{{Tool: "Bash", Action: Allow}},
		Schema: []byte(`{"type":"object","properties":{"grade":{"type":"integer"}},"required":["grade"]}`),
	}, h)
	if log := r.read(t, "servers", ".log"); strings.Contains(log, "the gateway ") {
		t.Errorf("the gateway drops a beta header:\n%s", log)
	}
	if got := h.results(); string(res.Structured) != `{"grade":7}` || len(got) < 2 || got[0] != "noted hello" ||
		!strings.HasPrefix(got[1], "failed: ") {
		t.Errorf("results %q, %+v", got, res)
	}
}

// While a person decides, or the host does a call for the CLI, the agent cannot show work. The idle time should
// count from the answer.
func TestWaitingForAnAnswerIsNotSilence(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]Rule{"ask": {Action: Ask}, "delegate": {Action: Delegate}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answered := make(chan struct{})
				rule.Tool, rule.Run = "Bash", func(context.Context, ToolRequest) (string, error) {
					<-answered
					return "", nil
				}
				in := protocol.NewStdin(nil)
				in.Close()
				l := &liveRun{
					invocation: invocation{
						spec: Spec{IdleLimit: time.Minute}, host: &host{asked: func(context.Context) { <-answered }},
					},
					r:       &Runner{exitLimit: time.Second, pingAfter: 24 * time.Hour, usedEvery: 24 * time.Hour},
					policy:  tools.Policy{Profile: Write, Rules: []Rule{rule}},
					control: protocol.NewControl(in, func(error) {}), stream: protocol.NewStream(protocol.Config{}),
					idle: make(chan struct{}), quiet: make(chan struct{}),
				}
				l.stream.Sent("prompt")
				l.ctx, l.cancel = context.WithCancelCause(t.Context())
				watched := make(chan struct{})
				go func() { l.watch(); close(watched) }()
				streamHandler{l}.Ask("q", &protocol.Request{Subtype: "can_use_tool", Tool: "Bash"})
				select {
				case <-watched:
					t.Fatalf("ended: %v", context.Cause(l.ctx))
				case <-time.After(time.Hour):
				}
				close(answered)
				from := time.Now()
				<-watched
				if cause := context.Cause(l.ctx); !errors.Is(cause, ErrStalled) || time.Since(from) != time.Minute {
					t.Errorf("%v, %s after the answer; want %v after a minute", cause, time.Since(from), ErrStalled)
				}
				l.control.Wait()
			})
		})
	}
}
