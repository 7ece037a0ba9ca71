package agent

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// maxInput bounds what is kept of a tool's input while it comes in.
const maxInput = 1 << 20

// call is a tool call that the main agent is writing.
type call struct {
	id, name string
	input    []byte
}

// delta handles a piece of the main agent's message. Sub-agents' pieces are never forwarded by the CLI.
func (s *stream) delta(l *wireLine) {
	if l.Event == nil || l.Parent != "" {
		return
	}
	index := int(l.Event.Index)
	switch l.Event.Type {
	case "message_start":
		s.begin(l.Event.Message.ID)
	case "message_stop":
		s.broken = false
	case "content_block_start":
		s.fresh = true
		if b := l.Event.Block; b.Type == "tool_use" && len(s.calls) < 100 {
			s.calls[index] = &call{id: b.ID, name: b.Name}
			s.event(Event{Kind: ToolInput, Tool: b.Name, ToolID: b.ID})
		}
	case "content_block_delta":
		switch d := l.Event.Delta; d.Type {
		case "text_delta":
			s.pieces = true
			s.say(d.Text, s.piece)
		case "thinking_delta":
			s.piece(Event{Kind: Thinking, Text: d.Thinking})
		case "input_json_delta":
			if c := s.calls[index]; c != nil && d.JSON != "" {
				if len(c.input)+len(d.JSON) <= maxInput {
					c.input = append(c.input, d.JSON...)
				}
				s.piece(Event{Kind: ToolInput, Text: d.JSON, Tool: c.name, ToolID: c.id})
			}
		}
	case "content_block_stop":
		s.settle()
		// The whole block has come before this as a line of its own, and has taken the call out.
		if c := s.calls[index]; c != nil && json.Valid(c.input) {
			s.use(c.id, c.name, c.input, l)
		}
		delete(s.calls, index)
	}
}

// begin notes that a message begins. One before it that was broken off is said again by the CLI, so what it had said is dropped.
func (s *stream) begin(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		s.facts.Partial = s.facts.Partial[:s.before]
	}
	s.message, s.blocks, s.fresh, s.pieces, s.broken, s.before = id, nil, true, false, true, len(s.facts.Partial)
	clear(s.calls)
	clear(s.tools) // the model speaks again, so all that it had called has come back
}

// say tells a piece of the main agent's text, or all of a block. Each block is a paragraph of its own.
func (s *stream) say(text string, tell func(Event)) {
	if text == "" {
		return
	}
	s.mu.Lock()
	if s.fresh && s.spoke {
		text = "\n\n" + text
	}
	s.fresh, s.spoke = false, true
	if len(s.facts.Partial) < maxPartial {
		s.facts.Partial = append(s.facts.Partial, text...)
	}
	s.mu.Unlock()
	tell(Event{Kind: Text, Text: text})
}

// assistant handles a finished block of a message; each block of a message comes in a line of its own.
func (s *stream) assistant(l *wireLine) {
	if l.Message == nil {
		return
	}
	if l.Parent == "" {
		s.settle()
		if l.Message.ID != s.message {
			s.begin(l.Message.ID)
			s.broken = false
		}
		s.mu.Lock()
		s.facts.AssistantError = l.Error
		if l.Message.Model != "<synthetic>" {
			s.facts.Answered = cmp.Or(l.Message.Model, s.facts.Answered)
		}
		s.mu.Unlock()
	}
	for _, b := range l.Message.Content {
		switch b.Type {
		case "text":
			s.log.Note(s.now(), "%s%s", who(l), b.Text)
			switch {
			case l.Parent != "":
				s.event(Event{Kind: Text, Text: b.Text, Parent: l.Parent, Agent: l.Agent})
			case l.Error == "":
				s.finished(b.Text)
			}
		case "thinking":
			s.log.Note(s.now(), "%s(thinks) %s", who(l), b.Thinking)
		case "tool_use":
			maps.DeleteFunc(s.calls, func(_ int, c *call) bool { return c.id == b.ID })
			s.use(b.ID, b.Name, b.Input, l)
		}
	}
}

// finished handles a block of the main agent's text that is whole.
func (s *stream) finished(text string) {
	if text != "" {
		s.blocks = append(s.blocks, text)
	}
	if !s.pieces { // the CLI had fallen back to a request without streaming
		s.fresh = true
		s.say(text, s.event)
	}
}

// answer is all text of the turn's last message: the CLI's result has that of the last block alone.
func (s *stream) answer(result string) string {
	if n := len(s.blocks); n > 1 && strings.TrimSpace(s.blocks[n-1]) == strings.TrimSpace(result) {
		return strings.Join(s.blocks, "\n\n")
	}
	return result
}

// use tells of a tool call.
func (s *stream) use(id, name string, input []byte, l *wireLine) {
	words := describe(s.redact, s.dir, name, input)
	if !known(name) {
		s.unknown("tool:" + redact.Clip(s.redact.OneLine(name), describeWidth))
	}
	s.mu.Lock()
	s.tools[id] = words
	s.mu.Unlock()
	s.log.Note(s.now(), "%s→ %s", who(l), words)
	s.event(Event{Kind: ToolUse, Text: words, Tool: name, ToolID: id, Input: small(input), Parent: l.Parent, Agent: l.Agent})
}

// who marks what a sub-agent did.
func who(l *wireLine) string {
	switch {
	case l.Parent == "":
		return ""
	case l.Agent == "":
		return "[sub-agent] "
	default:
		return "[" + l.Agent + "] "
	}
}

// small leaves out an input too large to be shown.
func small(v []byte) json.RawMessage {
	if len(v) > 8*maxPreview {
		return nil
	}
	return v
}

// user handles what came back from tools.
func (s *stream) user(l *wireLine) {
	if l.Message == nil {
		return
	}
	for _, b := range l.Message.Content {
		if b.Type != "tool_result" {
			continue
		}
		s.mu.Lock()
		delete(s.tools, b.ToolUseID)
		s.mu.Unlock()
		text, done := strings.CutPrefix(string(b.Content), delegated)
		text = s.redact.Head([]byte(text), maxPreview)
		failed := b.IsError && !done
		mark := "←"
		if failed {
			mark = "← failed:"
		}
		s.log.Note(s.now(), "%s%s %s", who(l), mark, text)
		s.event(Event{Kind: ToolResult, Text: text, ToolID: b.ToolUseID, Error: failed, Parent: l.Parent, Agent: l.Agent})
	}
}

// result handles the end of a turn; the run goes on until the session is idle.
func (s *stream) result(l *wireLine) {
	s.settle()
	r := l.wireResult
	if !r.IsError {
		r.Result = s.answer(r.Result)
	}
	s.mu.Lock()
	s.facts.Last, s.facts.LastSubtype = &r, l.Subtype
	s.facts.Results++
	if r.Structured != nil {
		s.facts.Structured = r.Structured
	}
	s.facts.Turns += int(r.NumTurns)
	s.facts.Session = l.SessionID
	if !r.IsError {
		if strings.TrimSpace(r.Result) != "" && s.facts.Said+len(r.Result) <= maxAnswer {
			s.facts.Answers = append(s.facts.Answers, r.Result)
			s.facts.Said += len(r.Result)
			s.facts.Partial, s.before = nil, 0
		}
	}
	s.clock.Turn, s.clock.Ended, s.rests = false, s.now(), false
	clear(s.tools)
	s.mu.Unlock()
	s.log.Note(s.now(), "= %s (%s, %s, %d turns, $%.4f)", l.Subtype, orDash(r.TerminalReason), orDash(r.StopReason), int(r.NumTurns), r.CostUSD)
	s.spent(r.CostUSD, r.ModelUsage)
	if r.interrupted() {
		s.event(Event{Kind: Notice, Text: "The turn was interrupted."})
		return
	}
	s.event(Event{Kind: TurnEnd, Text: r.said(), Error: r.IsError})
}
