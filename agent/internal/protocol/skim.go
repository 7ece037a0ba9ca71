package protocol

import (
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// skimmer reads the kinds of lines that make up nearly all of the CLI's output: pieces of messages, whole messages, and
// results of tools. Decoding them in general costs more than everything else that is done with a line.
type skimmer struct {
	scanner
	event   apiEvent // reused for each line, as are the next two
	message apiMessage
	blocks  content
	text    []byte     // buffer for texts with escapes
	names   [64]string // short strings of former lines, by a hash: the same types and IDs come again and again
}

// keptText is the maximum size of the buffer for texts that is kept between lines.
const keptText = 64 << 10

// skim reads one line into l as decode does, with the same result, except that inputs of tools are parts of the line
// and what l points to is valid until the next call. It returns false if the line has anything that it does not read,
// so that decode must be used.
func (k *skimmer) skim(line []byte, l *outputLine) bool {
	k.scanner = scanner{line: line}
	*l = outputLine{}
	k.object(func(name []byte) {
		switch string(name) {
		case "type":
			k.name(&l.Type)
		case "subtype":
			k.name(&l.Subtype)
		case "session_id":
			k.name(&l.SessionID)
		case "parent_tool_use_id":
			k.name(&l.Parent)
		case "error":
			k.name(&l.Error)
		case "subagent_type":
			k.name(&l.Agent)
		case "request_id":
			k.name(&l.RequestID)
		case "event":
			k.lost = k.lost || l.Event != nil
			k.event, l.Event = apiEvent{}, &k.event
			k.readEvent()
		case "message":
			k.lost = k.lost || l.Message != nil
			k.message, l.Message = apiMessage{}, &k.message
			k.readMessage()
		default:
			k.lost = k.lost || decodedOnly(name)
			k.skip()
		}
	})
	return !k.lost && k.at == len(line) && l.Type != ""
}

// forget drops what belongs to the latest line, also in l, so that a waiting run does not keep it.
func (k *skimmer) forget(l *outputLine) {
	*l = outputLine{}
	k.scanner, k.event, k.message = scanner{}, apiEvent{}, apiMessage{}
	clear(k.blocks)
	if cap(k.text) > keptText {
		k.text = nil
	}
}

// decodedOnly reports whether a field of a line is read by decode and not by skim.
func decodedOnly(name []byte) bool {
	switch string(name) {
	case "model", "claude_code_version", "state", "attempt", "max_retries", "tool_name", "command_uuid",
		"tasks", "description", "is_backgrounded", "status", "summary", "tool_use_id",
		"mcp_servers", "request", "response",
		"rate_limit_info", "is_error", "result", "errors", "num_turns", "total_cost_usd", "api_error_status",
		"api_error", "api_error_params", "terminal_reason", "stop_reason", "startup_failure_reason",
		"structured_output", "modelUsage":
		return true
	}
	return false
}

func (k *skimmer) readEvent() {
	e := &k.event
	k.object(func(name []byte) {
		switch string(name) {
		case "type":
			k.name(&e.Type)
		case "index":
			k.smallNumber(&e.Index)
		case "delta":
			k.object(func(name []byte) {
				switch string(name) {
				case "type":
					k.name(&e.Delta.Type)
				case "text":
					k.string(&e.Delta.Text)
				case "thinking":
					k.string(&e.Delta.Thinking)
				case "partial_json":
					k.string(&e.Delta.JSON)
				case "stop_reason":
					k.name(&e.Delta.StopReason)
				default:
					k.skip()
				}
			})
		case "content_block":
			k.object(func(name []byte) {
				switch string(name) {
				case "type":
					k.name(&e.Block.Type)
				case "id":
					k.name(&e.Block.ID)
				case "name":
					k.name(&e.Block.Name)
				default:
					k.skip()
				}
			})
		case "message":
			k.object(func(name []byte) {
				if string(name) == "id" {
					k.name(&e.Message.ID)
				} else {
					k.skip()
				}
			})
		default:
			k.skip()
		}
	})
}

func (k *skimmer) readMessage() {
	m := &k.message
	k.object(func(name []byte) {
		switch string(name) {
		case "id":
			k.name(&m.ID)
		case "model":
			k.name(&m.Model)
		case "stop_reason":
			k.name(&m.StopReason)
		case "content":
			k.lost = k.lost || m.Content != nil
			k.blocks = append(k.blocks[:0], contentBlock{})[:0] // not nil
			k.list('[', ']', k.readBlock)
			m.Content = k.blocks
		default:
			k.skip()
		}
	})
}

func (k *skimmer) readBlock() {
	var b contentBlock
	k.object(func(name []byte) {
		switch string(name) {
		case "type":
			k.name(&b.Type)
		case "text":
			k.string(&b.Text)
		case "thinking":
			k.string(&b.Thinking)
		case "id":
			k.name(&b.ID)
		case "name":
			k.name(&b.Name)
		case "input":
			b.Input = k.value()
		case "tool_use_id":
			k.name(&b.ToolUseID)
		case "content":
			b.Content = excerptOf(k.value())
		case "is_error":
			v := k.value()
			b.IsError = v.Kind() == 't'
			k.lost = k.lost || v.Kind() != 't' && v.Kind() != 'f'
		default:
			k.skip()
		}
	})
	k.blocks = append(k.blocks, b)
}

// string reads a string that is not likely to come again.
func (k *skimmer) string(to *string) {
	from := k.at
	text, escaped := k.content()
	switch {
	case k.lost:
	case escaped || !utf8.Valid(text):
		k.text, _ = jsontext.AppendUnquote(k.text[:0], k.line[from:k.at]) // replaces what is not valid UTF-8
		*to = string(k.text)
	default:
		*to = string(text)
	}
}

// name reads a string that has probably occurred before. It accepts null, which decode takes for an empty string.
func (k *skimmer) name(to *string) {
	if k.peek() == 'n' {
		k.word("null")
		*to = ""
		return
	}
	text, escaped := k.content()
	known := to
	if n := len(text); 0 < n && n <= 64 {
		known = &k.names[(3*n+int(text[0])+int(text[n-1]))%len(k.names)]
	}
	if *known != string(text) {
		if k.lost = k.lost || !utf8.Valid(text); !k.lost {
			*known = string(text)
		}
	}
	*to, k.lost = *known, k.lost || escaped
}

// smallNumber reads a number without a sign, a fraction or an exponent.
func (k *skimmer) smallNumber(to *float64) {
	n, err := strconv.ParseUint(string(k.number()), 10, 32)
	k.lost = k.lost || err != nil
	*to = float64(n)
}
