package modelfake_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// full uses every kind of block.
func full() modelfake.Turn {
	return modelfake.Turn{
		Thinking: "Let me think.",
		Text:     "You said {{prompt}}, in turn {{turns}}.",
		Tools:    []modelfake.ToolCall{{Name: "Bash", Input: map[string]any{"command": "echo hi"}}, {Name: "List"}},
		Usage:    modelfake.Usage{Input: 7, Output: 8, CacheRead: 9, CacheWrite: 10},
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("", full())
	r := ask(t, s, streaming)
	if got := r.header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	want := []string{
		"message_start", "ping",
		"content_block_start thinking", "thinking_delta Let me think", "thinking_delta .", "signature_delta",
		"content_block_stop", "content_block_start text", "text_delta You said hel", "text_delta lo, in turn ",
		"text_delta 1.", "content_block_stop",
		"content_block_start tool_use", `input_json_delta {"command":"`, `input_json_delta echo hi"}`,
		"content_block_stop",
		"content_block_start tool_use", "input_json_delta {}", "content_block_stop",
		"message_delta tool_use", "message_stop",
	}
	if diff := gocmp.Diff(want, outline(t, r.body)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, usage := range []string{
		`"usage":{"cache_creation_input_tokens":10,"cache_read_input_tokens":9,"input_tokens":7,"output_tokens":1,`,
		`"usage":{"cache_creation_input_tokens":10,"cache_read_input_tokens":9,"input_tokens":7,"output_tokens":8,`,
	} {
		if !strings.Contains(r.body, usage) {
			t.Errorf("no %s in %s", usage, r.body)
		}
	}
}

// The CLI must get the same from a request without streaming as from the stream.
func TestWhole(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("", full())
	r := ask(t, s, `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
	var got struct {
		ID, Type, Role, Model string
		StopReason            string `json:"stop_reason"`
		Content               []map[string]any
		Usage                 map[string]any
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatal(err)
	}
	ids := map[any]bool{}
	for _, b := range got.Content {
		if id, ok := b["id"]; ok {
			ids[id] = true
			delete(b, "id")
		}
	}
	if len(ids) != 2 {
		t.Errorf("tool calls have the ids %v, want two different ones", ids)
	}
	want := []map[string]any{
		{"type": "thinking", "thinking": "Let me think.", "signature": "bW9kZWxmYWtl"},
		{"type": "text", "text": "You said hello, in turn 1."},
		{"type": "tool_use", "name": "Bash", "input": map[string]any{"command": "echo hi"}},
		{"type": "tool_use", "name": "List", "input": map[string]any{}},
	}
	if diff := gocmp.Diff(want, got.Content); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.ID == "" || got.Type != "message" || got.Role != "assistant" || got.Model != "m" ||
		got.StopReason != "tool_use" {
		t.Errorf("got %+v", got)
	}
	if got.Usage["output_tokens"] != 8.0 {
		t.Errorf("usage %v", got.Usage)
	}
}

func TestChunksAreKeptAsTheyAre(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("", modelfake.Turn{
		Text: "not this", Chunks: []string{"a", "rather long chunk for {{prompt}}"}, Stop: "max_tokens",
	})
	want := []string{
		"message_start", "ping", "content_block_start text", "text_delta a", "text_delta rather long chunk for hello",
		"content_block_stop", "message_delta max_tokens", "message_stop",
	}
	if diff := gocmp.Diff(want, outline(t, ask(t, s, streaming).body)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTextIsNotCutInsideARune(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("", modelfake.Turn{Text: "ééééééééééééé"})
	got := outline(t, ask(t, s, streaming).body)
	if diff := gocmp.Diff([]string{"text_delta éééééééééééé", "text_delta é"}, got[3:5]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	turn := full()
	turn.Cut = true
	s.Answer("", turn)
	r := ask(t, s, streaming)
	if r.err == nil {
		t.Error("the stream ended as if it were complete")
	}
	got := outline(t, r.body)
	if last := got[len(got)-1]; last != "text_delta 1." {
		t.Errorf("the last event is %q", last)
	}
	whole := ask(t, s, `{"messages":[{"role":"user","content":"hello"}]}`)
	if whole.err != nil || !strings.Contains(whole.body, `"stop_reason":"tool_use"`) {
		t.Errorf("without streaming: %v %s", whole.err, whole.body)
	}
}

// outline describes each event in a few words, and checks that its name and its data agree.
func outline(t *testing.T, body string) []string {
	t.Helper()
	var lines []string
	for event := range strings.SplitSeq(body, "\n\n") {
		name, data, ok := strings.Cut(event, "\ndata: ")
		if !ok {
			continue
		}
		var e struct {
			Type  string
			Block struct{ Type string } `json:"content_block"`
			Delta struct {
				Type, Text, Thinking string
				JSON                 string `json:"partial_json"`
				Stop                 string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		if name != "event: "+e.Type {
			t.Errorf("%s has the type %s", name, e.Type)
		}
		words := []string{cmp.Or(e.Delta.Type, e.Type)}
		for _, w := range []string{e.Block.Type, e.Delta.Text, e.Delta.Thinking, e.Delta.JSON, e.Delta.Stop} {
			if w != "" {
				words = append(words, w)
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}
