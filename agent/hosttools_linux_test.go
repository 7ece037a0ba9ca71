package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/tools"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/google/go-cmp/cmp"
)

// hostCall is a call of a tool of the host, by the model.
func hostCall(name string, input any) modelfake.ToolCall {
	return modelfake.ToolCall{Name: "mcp__errand__" + name, Input: input}
}

// simple is a tool without arguments.
func simple(name string, run func(context.Context) (string, error)) Tool {
	return NewTool(name, "A tool of the test.", func(ctx context.Context, _ struct{}) (string, error) {
		return run(ctx)
	})
}

// refuse is a host that must not be asked.
func refuse(t *testing.T) *host {
	return &host{permit: func(r ToolRequest) Decision {
		t.Errorf("the host was asked about %s", r.Tool)
		return Decision{}
	}}
}

// answered are the results of tools that the model saw in its latest request, in the order in which it saw them.
func answered(t *testing.T, model *modelfake.Server) (results []string) {
	t.Helper()
	calls := model.Requests()
	var body struct {
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(calls[len(calls)-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	for _, m := range body.Messages {
		var blocks []struct {
			Type    string          `json:"type"`
			IsError bool            `json:"is_error"`
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(m.Content, &blocks) // a string has no results
		for _, b := range blocks {
			if b.Type == "tool_result" {
				results = append(results, fmt.Sprintf("%v %s", b.IsError, textOf(b.Content)))
			}
		}
	}
	return results
}

// textOf returns the text of a tool's result: a string, or a list of blocks.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &blocks)
	var texts []string
	for _, b := range blocks {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n")
}

// sum is a tool of the host.
func sum() Tool {
	type numbers struct {
		A int `json:"a" jsonschema:"the first number"`
		B int `json:"b"`
	}
	return NewTool("add", "Adds two numbers.", func(_ context.Context, n numbers) (string, error) {
		return fmt.Sprint("it is ", n.A+n.B), nil
	})
}

// adding is a call of that tool.
func adding() modelfake.ToolCall { return hostCall("add", map[string]int{"a": 40, "b": 2}) }

// knows checks that the model knew that tool from its first request.
func knows(t *testing.T, model *modelfake.Server) {
	t.Helper()
	for _, known := range []string{"mcp__errand__add", "Adds two numbers.", "the first number"} {
		if !bytes.Contains(model.Requests()[0].Body, []byte(known)) {
			t.Errorf("the model's first request does not have %q", known)
		}
	}
}

// The model knows the tools of the host from its first request, and calls them without approval. TestCLIReadsOnly has the
// other profiles. An error of a tool should reach the agent without secrets, and affect no other call. Calls of tools that only read are
// made at once: each of two ends only when the other has begun.
func TestCLIHostToolFails(t *testing.T) {
	t.Parallel()
	model := newModel(t, modelfake.Turn{Tools: []modelfake.ToolCall{
		adding(), hostCall("fails", struct{}{}), hostCall("panics", struct{}{}), hostCall("tells", struct{}{}),
		hostCall("tells", map[string]int{"x": 1}),
	}}, modelfake.Turn{Tools: []modelfake.ToolCall{
		hostCall("one", struct{}{}), hostCall("two", struct{}{}),
	}}, modelfake.Turn{Text: "So be it."})
	var logged bytes.Buffer
	r := newCLI(t, model, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	var begun sync.WaitGroup
	begun.Add(2)
	meet := func(name string) Tool {
		tool := simple(name, func(context.Context) (string, error) { begun.Done(); begun.Wait(); return name, nil })
		tool.ReadOnly = true
		return tool
	}
	res := runCLI(t, r, Spec{
		ID: "tool-fails", Profile: Write, Tools: []Tool{
			sum(), meet("one"), meet("two"),
			simple("fails", func(context.Context) (string, error) {
				return "", errors.New("no entry with sk-ant-test-credential")
			}),
			simple("panics", func(context.Context) (string, error) { panic("out of range") }),
			simple("tells", func(context.Context) (string, error) { return "it is sk-ant-test-credential", nil }),
		},
	}, refuse(t))
	if res.Outcome != Done || res.Text != "So be it." {
		t.Errorf("outcome %s, text %q", res.Outcome, res.Text)
	}
	knows(t, model)
	want := []string{
		"false it is 42", "true no entry with [redacted]", "true internal error of the tool", "false it is [redacted]",
		`true check arguments: validating root: unexpected additional properties ["x"]`, "false one", "false two",
	}
	got := answered(t, model)
	slices.Sort(got[5:]) // whichever comes first
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if got := logged.String(); !strings.Contains(got, "host tool panicked") || !strings.Contains(got, "out of range") {
		t.Errorf("the worker's log: %s", got)
	}
}

// A tool that waits, for a person perhaps, hears why the run ends.
func TestCLIStopReachesHostTool(t *testing.T) {
	t.Parallel()
	model := newModel(t, modelfake.Turn{Tools: []modelfake.ToolCall{hostCall("wait", struct{}{})}})
	enough := errors.New("someone said stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	var heard error
	wait := simple("wait", func(ctx context.Context) (string, error) {
		cancel(enough)
		<-ctx.Done()
		heard = context.Cause(ctx)
		return "", heard
	})
	res, err := newCLI(t, model).Run(ctx, Spec{
		ID: "tool-stop", Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Read, Tools: []Tool{wait},
	}, refuse(t))
	if err != nil || res.Outcome != Stopped {
		t.Errorf("outcome %s, %v", res.Outcome, err)
	}
	if !errors.Is(heard, enough) {
		t.Errorf("the tool received %v", heard)
	}
}

// Messages to a server that errand does not run are errors to the CLI.
func TestOtherToolServers(t *testing.T) {
	t.Parallel()
	s := tools.Serve(t.Context(), []Tool{simple("now", func(context.Context) (string, error) {
		return "",
			nil
	})}, nil, nil)
	for _, l := range []*liveRun{{}, {tools: s}} {
		if got, err := l.answer(t.Context(), &protocol.Request{Subtype: "mcp_message", Server: "other"}); err == nil {
			t.Errorf("for another server: %v", got)
		}
	}
}

func TestToolsAreChecked(t *testing.T) {
	t.Parallel()
	run := func(context.Context, json.RawMessage) (string, error) { return "", nil }
	object := json.RawMessage(`{"type":"object"}`)
	for want, offered := range map[string][]Tool{
		`tool "Add": its name is not of the form`: {{Name: "Add", Input: object, Run: run}},
		`tool "": its name is not of the form`:    {{Input: object, Run: run}},
		`tool "a": it has no Run function`:        {{Name: "a", Input: object}},
		`tool "a": read its schema`:               {{Name: "a", Run: run}},
		`tool "a": its arguments are not an object`: {{
			Name: "a", Input: json.RawMessage(`{"type":"string"}`), Run: run,
		}},
		`tool "a": resolve its schema`: {{
			Name: "a", Input: json.RawMessage(`{"type":"object","$ref":"#/nowhere"}`), Run: run,
		}},
		`tool "a": its name is taken`: {{Name: "a", Input: object, Run: run}, {Name: "a", Input: object, Run: run}},
	} {
		_, err := newBench(t, "talk").Run(t.Context(), Spec{
			ID: "x", Dir: "/", Prompt: Message{Text: "x"}, Profile: Read, Tools: offered,
		}, &host{})
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Class != ClassInternal || !strings.Contains(e.Message, want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A run's goroutines should end with it: they inherit the labels of their parents.
func TestRunLeavesNoGoroutine(t *testing.T) {
	t.Parallel()
	b, label := newBench(t, "talk"), t.Name()
	pprof.Do(t.Context(), pprof.Labels("of", label), func(ctx context.Context) {
		b.run(t, ctx,
			Spec{Tools: []Tool{simple("now", func(context.Context) (string, error) { return "", nil })}}, &host{})
	})
	var left bytes.Buffer
	// The last ones are just about to return.
	deadline := time.Now().Add(2 * time.Minute)
	for ; time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		left.Reset()
		if err := pprof.Lookup("goroutine").WriteTo(&left, 1); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(left.String(), label+`"}`) {
			return
		}
	}
	t.Errorf("there is one with the label %s:\n%s", label, &left)
}
