package modelfake

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// deltaRunes is the length of a delta. It is short enough to cut words, tool arguments and escapes in the middle, as
// the real API does, because a reader of the stream must handle that.
const deltaRunes = 12

// object is a JSON object. The fake writes too few of them to need a type for each.
type object = map[string]any

// answer is a turn as it goes over the wire, the same with and without streaming.
type answer struct {
	head   object // the message without content
	blocks []block
	tools  int // how many of the blocks, the last ones, are tool calls
	stop   string
	usage  Usage
}

// block is one content block: the start of its stream, the pieces, and the whole.
type block struct {
	start, whole object
	deltas       []object
}

// answer fills in the turn for one request.
func (t Turn) answer(model string, conv conversation) answer {
	a := answer{tools: len(t.Tools), stop: t.Stop, usage: t.Usage}
	if a.usage == (Usage{}) {
		a.usage = Usage{Input: 100, Output: 20}
	}
	if a.stop == "" {
		a.stop = "end_turn"
		if a.tools > 0 {
			a.stop = "tool_use"
		}
	}
	// A resumed session may hold answers of an earlier server, so IDs are random and not counted.
	a.head = object{
		"id": "msg_" + rand.Text(), "type": "message", "role": "assistant", "model": cmp.Or(t.Model, model),
		"content": []object{}, "stop_reason": nil, "stop_sequence": nil, "usage": a.used(1),
	}

	fill := strings.NewReplacer("{{prompt}}", conv.prompt, "{{turns}}", strconv.Itoa(conv.prompts))
	for part := &t; part != nil; part = part.Rest {
		a.blocks = append(a.blocks, part.words(fill)...)
	}
	for _, call := range t.Tools {
		a.blocks = append(a.blocks, toolUse(call))
	}
	return a
}

// words returns the blocks of thinking and text.
func (t Turn) words(fill *strings.Replacer) (blocks []block) {
	if t.Thinking != "" {
		blocks = append(blocks, thinking(t.Thinking))
	}
	chunks := cut(fill.Replace(t.Text))
	if len(t.Chunks) > 0 {
		chunks = nil
		for _, c := range t.Chunks {
			chunks = append(chunks, fill.Replace(c))
		}
	}
	if len(chunks) > 0 {
		blocks = append(blocks, text(chunks))
	}
	return blocks
}

// message returns the answer to a request without streaming.
func (a answer) message() object {
	content := make([]object, len(a.blocks))
	for i, b := range a.blocks {
		content[i] = b.whole
	}
	a.head["content"], a.head["stop_reason"], a.head["usage"] = content, a.stop, a.used(a.usage.Output)
	return a.head
}

// used returns the usage with that many output tokens: one when the stream starts, all at its end.
func (a answer) used(output int) object {
	u := object{
		"input_tokens": a.usage.Input, "output_tokens": output, "service_tier": "standard",
		"cache_read_input_tokens": a.usage.CacheRead, "cache_creation_input_tokens": a.usage.CacheWrite,
	}
	if hour := a.usage.CacheHour; hour > 0 {
		u["cache_creation"] = object{
			"ephemeral_1h_input_tokens": hour, "ephemeral_5m_input_tokens": a.usage.CacheWrite - hour,
		}
	}
	if n := a.usage.Searches; n > 0 {
		u["server_tool_use"] = object{"web_search_requests": n}
	}
	return u
}

func text(chunks []string) block {
	b := block{
		start: object{"type": "text", "text": ""},
		whole: object{"type": "text", "text": strings.Join(chunks, "")},
	}
	for _, c := range chunks {
		b.deltas = append(b.deltas, object{"type": "text_delta", "text": c})
	}
	return b
}

// thinking ends with its signature, because the CLI sends no block back without one.
func thinking(s string) block {
	const signature = "bW9kZWxmYWtl"
	b := block{
		start: object{"type": "thinking", "thinking": "", "signature": ""},
		whole: object{"type": "thinking", "thinking": s, "signature": signature},
	}
	for _, c := range cut(s) {
		b.deltas = append(b.deltas, object{"type": "thinking_delta", "thinking": c})
	}
	b.deltas = append(b.deltas, object{"type": "signature_delta", "signature": signature})
	return b
}

// toolUse streams the input as pieces of JSON text; the empty object at the start is only a placeholder.
func toolUse(call ToolCall) block {
	id := "toolu_" + rand.Text()
	input := call.json()
	b := block{
		start: object{"type": "tool_use", "id": id, "name": call.Name, "input": object{}},
		whole: object{"type": "tool_use", "id": id, "name": call.Name, "input": input},
	}
	for _, c := range cut(string(input)) {
		b.deltas = append(b.deltas, object{"type": "input_json_delta", "partial_json": c})
	}
	return b
}

// json returns the input as it is sent. It panics if the input is not valid JSON; Server.Answer makes that panic the
// test's.
func (c ToolCall) json() json.RawMessage {
	if c.Input == nil {
		return json.RawMessage("{}")
	}
	b, err := json.Marshal(c.Input)
	if err != nil {
		panic("modelfake: input of " + c.Name + ": " + err.Error())
	}
	return b
}

// cut never splits a rune: a chunk must be valid JSON by itself.
func cut(s string) []string {
	var chunks []string
	for c := range slices.Chunk([]rune(s), deltaRunes) {
		chunks = append(chunks, string(c))
	}
	return chunks
}
