package modelfake_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// These tests run the real CLI. They pin the behaviour that the fake assumes, so that a new version of the CLI fails
// here and not in the tests that use the fake.

const (
	firstID  = "11111111-1111-4111-8111-111111111111"
	secondID = "22222222-2222-4222-8222-222222222222"
)

func TestCLIText(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("good morning", modelfake.Turn{Thinking: "Politeness.", Text: "You said: {{prompt}}"})
	if out, code := newHome(t, s).run(t, "good morning"); out != "You said: good morning" || code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	got := s.Requests()
	if len(got) != 1 {
		t.Fatalf("%d requests, want 1", len(got))
	}
	r := got[0]
	if r.Key != "sk-ant-test" || !r.Stream || r.Turn != 0 || r.Prompts != 1 || r.Model == "" || r.System == "" {
		t.Errorf("got %+v", r)
	}
	if !strings.Contains(strings.Join(r.Tools, " "), "Bash") {
		t.Errorf("tools %v", r.Tools)
	}
}

func TestCLITools(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("", modelfake.Turn{
		Thinking: "Two commands.", Text: "Let me see.",
		Tools: []modelfake.ToolCall{bash("echo hi"), bash("echo ho")},
	}, modelfake.Turn{Text: "done"})
	if out, code := newHome(t, s).run(t, "--allowedTools=Bash", "go"); out != "done" || code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if diff := cmp.Diff([]string{"0 go", "1 go"}, turns(s)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	for _, want := range []string{
		`"content":"hi"`, `"content":"ho"`, `"thinking":"Two commands."`, `"text":"Let me see."`,
	} {
		if body := s.Requests()[1].Body; !bytes.Contains(body, []byte(want)) {
			t.Errorf("the CLI did not send %s", want)
		}
	}
}

func TestCLIError(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("", modelfake.Turn{Status: http.StatusUnauthorized, Message: "who are you?"})
	out, code := newHome(t, s).run(t, "hello")
	if want := "Failed to authenticate. API Error: 401 who are you?"; out != want || code != 1 {
		t.Errorf("exit %d: %s, want 1: %s", code, out, want)
	}
}

func TestCLIRepeatsABrokenStreamWhole(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("", modelfake.Turn{Text: "said twice, heard once", Cut: true})
	if out, code := newHome(t, s).run(t, "hello"); out != "said twice, heard once" || code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if got := s.Requests(); len(got) != 2 || !got[0].Stream || got[1].Stream {
		t.Errorf("got %d requests: %v", len(got), turns(s))
	}
}

// The first run ends without an answer, so that its prompt and that of the second share one message.
func TestCLIResume(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("one", modelfake.Turn{Status: 529})
	s.Answer("", modelfake.Turn{Text: "{{turns}}: {{prompt}}"})
	h := newHome(t, s)
	if out, code := h.run(t, "--session-id="+firstID, "one"); code != 1 {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, c := range [][2]string{{"two", "2: two"}, {"three", "3: three"}} {
		if out, _ := h.run(t, "--resume="+firstID, c[0]); out != c[1] {
			t.Errorf("got %q, want %q", out, c[1])
		}
	}
}

// The CLI itself writes this text to make the model continue.
func TestCLIGoesOnByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first  modelfake.Turn
		arg    string
		second string
	}{
		"max tokens":        {modelfake.Turn{Text: "half", Stop: "max_tokens"}, "--setting-sources=", "1 go"},
		"refusal":           {modelfake.Turn{Text: "no", Stop: "refusal"}, "--setting-sources=", "1 go"},
		"structured output": {modelfake.Turn{Text: "no"}, `--json-schema={"type":"object"}`, "1 go"},
		// An answer without content leaves nothing in the conversation to be counted.
		"empty answer": {modelfake.Turn{}, "--setting-sources=", "0 go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelfake.New()
			defer s.Close()
			s.Answer("", c.first, modelfake.Turn{Text: "rest"})
			newHome(t, s).run(t, c.arg, "go")
			if diff := cmp.Diff([]string{"0 go", c.second}, turns(s)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCLIMessageWhileAToolRuns(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	started, gate := make(chan struct{}, 1), make(chan struct{})
	s.Answer("first", modelfake.Turn{Started: started, Gate: gate, Tools: []modelfake.ToolCall{bash("echo hi")}})
	s.Answer("and this", modelfake.Turn{Text: "both done"})
	cli := newHome(t, s).session(t, "--allowedTools=Bash")
	cli.say(t, firstID, "first")
	<-started
	cli.say(t, secondID, "and this")
	cli.until(t, "command_lifecycle", secondID, "queued")
	close(gate)
	cli.until(t, `"type":"result"`, "both done")
	cli.end(t)
	if diff := cmp.Diff([]string{"0 first", "0 and this"}, turns(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCLIInterrupt(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]modelfake.Turn{
		"before any text": {Hang: true},
		"in the text":     {Text: "so far", Hang: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelfake.New()
			defer s.Close()
			s.Answer("first", hang)
			s.Answer("second", modelfake.Turn{Text: "alive, {{turns}}"})
			cli := newHome(t, s).session(t, "--include-partial-messages")
			cli.say(t, firstID, "first")
			cli.until(t, `"stream_event"`, hang.Text)
			cli.write(t, `{"type":"control_request","request_id":"stop","request":{"subtype":"interrupt"}}`)
			cli.until(t, `"type":"result"`, "aborted_streaming")
			cli.say(t, secondID, "second")
			cli.until(t, `"type":"result"`, "alive, 2")
			cli.end(t)
		})
	}
}

// A subagent is a separate conversation. If it ran in the background, the first one is notified when it ends.
func TestCLISubagent(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	gate := make(chan struct{})
	s.Answer("delegate", modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Agent", Input: map[string]any{
		"description": "look", "prompt": "look around", "subagent_type": "general-purpose",
	}}}}, modelfake.Turn{Text: "it is looking"}, modelfake.Turn{Text: "it has looked"})
	s.Answer("look around", modelfake.Turn{Text: "nothing", Gate: gate})
	cli := newHome(t, s).session(t)
	cli.say(t, firstID, "delegate")
	cli.until(t, `"type":"result"`, "it is looking")
	close(gate)
	cli.until(t, `"type":"result"`, "it has looked")
	cli.end(t)
}

func bash(command string) modelfake.ToolCall {
	return modelfake.ToolCall{Name: "Bash", Input: map[string]any{"command": command, "description": "Say it"}}
}

// turns returns the turn and the prompt of each request.
func turns(s *modelfake.Server) []string {
	var lines []string
	for _, r := range s.Requests() {
		lines = append(lines, fmt.Sprintf("%d %s", r.Turn, r.Text))
	}
	return lines
}
