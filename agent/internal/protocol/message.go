package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// maxInput limits how much of a tool's input is kept while it arrives.
const maxInput = 1 << 20

// DelegatedResult begins the result of a tool call that the host made in place of the CLI. It reaches the agent as a
// refusal of the call, because the CLI accepts no other result than its own.
const DelegatedResult = "errand has done this call in the tool's place. It was not refused; do " +
	"not repeat it. Its result:\n\n"

// messageState is the state of the main agent's current message, and of the answer that it is part of. An answer has
// several messages if the CLI lets the model go on, such as after the maximum of tokens for one message.
type messageState struct {
	id       string
	earlier  string            // the answer's text in the messages before it
	seam     string            // between that and its own text
	blocks   []string          // its finished texts
	newBlock bool              // the next text begins a block
	inText   bool              // its latest block is text
	cut      bool              // it ended within its latest text
	ended    bool              // the next message begins another answer
	streamed bool              // its text arrived in pieces, and is not reported again at its end
	thought  bool              // its thoughts arrived in pieces
	open     bool              // it has begun and not ended
	before   int               // length of Facts.Partial when it began
	anyText  bool              // any message had text
	calls    map[int]*toolCall // the tool calls that it is writing, by the index of their block
}

// paragraph separates blocks of text.
const paragraph = "\n\n"

// text returns the text of the answer so far.
func (m *messageState) text() string {
	own := strings.Join(m.blocks, paragraph)
	if m.earlier == "" || own == "" {
		return m.earlier + own
	}
	return m.earlier + m.seam + own
}

// continues reports whether the message has no text yet and continues one that was cut.
func (m *messageState) continues() bool { return m.earlier != "" && len(m.blocks) == 0 && m.seam == "" }

// goesOn reports whether the text so far goes on in the next message: this one was cut, or comes after one that was and
// has no text. It may have thought until the maximum of tokens, or was broken off.
func (m *messageState) goesOn() bool { return m.cut || !m.streamed && !m.ended && m.continues() }

// gap returns what separates the next text from what was said before it.
func (m *messageState) gap() string {
	if m.earlier != "" && len(m.blocks) == 0 {
		return m.seam
	}
	return paragraph
}

// next begins the next message of the same answer, or of another one.
func (m *messageState) next() {
	switch {
	case m.ended:
		m.earlier = ""
	case len(m.blocks) > 0:
		m.earlier, m.seam = m.text(), paragraph
		if m.cut {
			m.seam = ""
		}
	}
	m.cut, m.ended = false, false
}

// stopped notes why the model ended its message. Only for these reasons it had written all that it wanted to write.
func (m *messageState) stopped(reason string) {
	switch reason {
	case "", "end_turn", "stop_sequence", "tool_use":
	default:
		m.cut = m.inText
	}
}

// toolCall is a tool call that the main agent is writing.
type toolCall struct {
	id, name string
	input    []byte
	piece    Event // of its input; without secrets, its text is still missing
}

// delta handles a piece of the main agent's message. The CLI never forwards pieces of sub-agents' messages.
func (s *Stream) delta(l *outputLine) {
	if l.Event == nil || l.Parent != "" {
		return
	}
	m, index := &s.message, int(l.Event.Index)
	switch l.Event.Type {
	case "message_start":
		s.endBlock(!m.goesOn())
		s.beginMessage(l.Event.Message.ID)
	case "message_stop":
		m.open = false
	case "message_delta":
		m.stopped(l.Event.Delta.StopReason)
		s.endBlock(!m.goesOn())
	case "content_block_start":
		s.endBlock(!m.continues())
		b := l.Event.Block
		m.newBlock, m.inText = true, b.Type == "text"
		if b.Type == "tool_use" && len(m.calls) < 100 {
			e := Event{Kind: ToolInput, Tool: s.Redactor.String(b.Name), ToolID: s.Redactor.String(b.ID)}
			m.calls[index] = &toolCall{id: b.ID, name: b.Name, piece: e}
			s.event(e)
		}
	case "content_block_delta":
		switch d := l.Event.Delta; d.Type {
		case "text_delta":
			m.streamed = true
			s.addText(d.Text, s.piece)
			s.Log.Text(s.at, "", d.Text)
		case "thinking_delta":
			m.thought = true
			s.piece(Event{Kind: Thinking, Text: d.Thinking})
			s.Log.Text(s.at, thinks, d.Thinking)
		case "input_json_delta":
			if c := m.calls[index]; c != nil && d.JSON != "" {
				if len(c.input)+len(d.JSON) <= maxInput {
					c.input = append(c.input, d.JSON...)
				}
				e := c.piece
				e.Text = d.JSON
				s.piece(e)
			}
		}
	case "content_block_stop":
		s.endBlock(false)
		// Usually the whole block has arrived before this as a line, and has removed the call.
		if c := m.calls[index]; c != nil && json.Valid(c.input) {
			s.toolUse(c.id, c.name, c.input, l)
		}
		delete(m.calls, index)
	case "ping":
	default:
		s.unknown(l.Type + "/" + l.Event.Type)
	}
}

// beginMessage records that a message begins. If the one before it was broken off, the CLI repeats it, so its text is
// dropped.
func (s *Stream) beginMessage(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.message
	if !m.goesOn() {
		delete(s.spoken, "")
	}
	if m.open {
		s.facts.Partial = s.facts.Partial[:m.before]
	} else {
		m.next()
	}
	m.id, m.blocks, m.newBlock, m.before = id, nil, true, len(s.facts.Partial)
	m.streamed, m.thought, m.open = false, false, true
	clear(m.calls)
	clear(s.tools) // the model speaks again, so all its calls have returned
}

// addText reports a piece of the main agent's text, or a whole block. Each block is a paragraph.
func (s *Stream) addText(text string, report func(Event)) {
	if text == "" {
		return
	}
	s.mu.Lock()
	if m := &s.message; m.newBlock && m.anyText {
		text = m.gap() + text
	}
	s.message.newBlock, s.message.anyText = false, true
	if len(s.facts.Partial) < maxPartial {
		s.facts.Partial = append(s.facts.Partial, text...)
	}
	s.mu.Unlock()
	report(Event{Kind: Text, Text: text})
}

// assistant handles a finished block of a message. Each block of a message arrives as a line.
func (s *Stream) assistant(l *outputLine) {
	if l.Message == nil {
		return
	}
	if l.Parent == "" {
		if l.Message.ID != s.message.id {
			s.endBlock(!s.message.goesOn())
			s.beginMessage(l.Message.ID)
			s.message.open = false
		}
		// A block that did not arrive in pieces begins here, so the one before it has ended.
		s.endBlock(!s.message.streamed && !s.message.continues())
		s.mu.Lock()
		s.facts.AssistantError, s.facts.Remedy = l.Error, l.Params.Remedy
		if l.Message.Model != "<synthetic>" {
			s.facts.Answered = cmp.Or(l.Message.Model, s.facts.Answered)
		}
		s.mu.Unlock()
	}
	for i := range l.Message.Content {
		s.finishBlock(l, &l.Message.Content[i])
	}
	if l.Parent == "" && l.Message.StopReason != "" {
		s.message.stopped(l.Message.StopReason)
		s.endBlock(!s.message.goesOn())
	}
}

// thinks begins the lines of the log with what an agent thinks.
const thinks = "(thinks) "

// finishBlock handles a complete block of an agent's message. What arrived in pieces is in the log already.
func (s *Stream) finishBlock(l *outputLine, b *contentBlock) {
	main := l.Parent == ""
	if main {
		s.message.inText = b.Type == "text"
	}
	switch b.Type {
	case "text":
		shown := s.showText(l.Parent, b.Text)
		if l.Error != "" {
			b.Text, shown = s.Names.Replace(b.Text), s.Names.Replace(shown)
		}
		if !main {
			s.Log.Note(s.at, "%s%s", l.author(), shown)
			s.event(Event{Kind: Text, Text: shown, Parent: l.Parent, Agent: l.Agent})
			return
		}
		if !s.message.streamed {
			s.Log.Text(s.at, "", b.Text)
		}
		if l.Error == "" {
			s.finishText(b.Text)
		}
	case "thinking":
		shown := s.showText(thinks+l.Parent, b.Thinking)
		if !main || !s.message.thought {
			s.Log.Note(s.at, "%s%s%s", l.author(), thinks, shown)
		}
	case "tool_use":
		maps.DeleteFunc(s.message.calls, func(_ int, c *toolCall) bool { return c.id == b.ID })
		s.toolUse(b.ID, b.Name, b.Input, l)
	}
}

// finishText handles a complete block of the main agent's text.
func (s *Stream) finishText(text string) {
	if !s.message.streamed { // the CLI fell back to a request without streaming
		s.message.newBlock = true
		s.addText(text, s.piece)
	}
	if text != "" {
		s.message.blocks = append(s.message.blocks, text)
	}
}

// endAnswer ends the answer and returns its whole text. The CLI's result has only the last block of the last message,
// or nothing if that message has no text.
func (m *messageState) endAnswer(result string) string {
	all, last := m.text(), ""
	if n := len(m.blocks); n > 0 {
		last = m.blocks[n-1]
	}
	m.earlier, m.blocks = "", nil
	if strings.TrimSpace(last) == strings.TrimSpace(result) {
		return all
	}
	return result
}

// toolUse reports a tool call.
func (s *Stream) toolUse(id, name string, input []byte, l *outputLine) {
	if l.Parent == "" {
		s.message.ended = true
	} else {
		delete(s.spoken, l.Parent) // a text before a call was not cut
	}
	words, known := s.Describe(name, input)
	if !known {
		s.unknown("tool:" + redact.Clip(s.Redactor.OneLine(name), 80))
	}
	s.mu.Lock()
	s.tools[id] = words
	s.mu.Unlock()
	s.Log.Note(s.at, "%s→ %s", l.author(), words)
	if len(input) > 8*maxPreview {
		input = nil // too large to show
	}
	s.event(Event{
		Kind: ToolUse, Text: words, Tool: name, ToolID: id, Input: bytes.Clone(input), Parent: l.Parent, Agent: l.Agent,
	})
}

// author returns a prefix for log lines about a sub-agent's actions.
func (l *outputLine) author() string {
	if l.Parent == "" {
		return ""
	}
	return "[" + cmp.Or(l.Agent, "sub-agent") + "] "
}

// user handles the results of tools.
func (s *Stream) user(l *outputLine) {
	if l.Message == nil {
		return
	}
	for _, b := range l.Message.Content {
		if b.Type != "tool_result" {
			continue
		}
		s.mu.Lock()
		delete(s.tools, b.ToolUseID)
		stopped := s.stopped
		s.mu.Unlock()
		output, delegated := bytes.CutPrefix(b.Content, []byte(DelegatedResult))
		text := s.Redactor.Head(output, maxPreview)
		failed, mark := b.IsError && !delegated, "←"
		switch {
		case failed && stopped:
			failed, mark = false, "← interrupted:"
		case failed:
			mark = "← failed:"
		}
		s.Log.Note(s.at, "%s%s %s", l.author(), mark, text)
		s.event(Event{
			Kind: ToolResult, Text: text, ToolID: b.ToolUseID, Error: failed, Parent: l.Parent, Agent: l.Agent,
		})
	}
}

// result handles the end of a turn. The run continues until the session is idle.
func (s *Stream) result(l *outputLine) {
	s.endBlock(true)
	r := l.Result
	text := s.message.endAnswer(r.Text)
	if before, ok := strings.CutSuffix(strings.TrimRight(text, " \n"), strings.TrimRight(r.Text, " \n")); ok {
		s.showPart(before[max(0, len(before)-maxSecret):], r.Text)
	}
	if !r.IsError {
		if r.Text = text; s.message.cut {
			r.Text = string(s.Redactor.Broken([]byte(text)))
		}
	} else {
		r.Text = s.Names.Replace(r.Text)
	}
	s.mu.Lock()
	f := &s.facts
	f.Last, f.LastSubtype = &r, l.Subtype
	f.Results++
	if r.Structured != nil {
		f.Structured = r.Structured
	}
	f.Turns += int(r.NumTurns)
	f.Session = l.SessionID
	if !r.IsError && strings.TrimSpace(r.Text) != "" && f.AnswerBytes+len(r.Text) <= maxAnswer {
		f.Answers = append(f.Answers, r.Text)
		f.AnswerBytes += len(r.Text)
		f.Partial, s.message.before = nil, 0
	}
	s.clock.Turn, s.clock.Ended, s.rests = false, s.at, false
	clear(s.tools)
	if f.Background == 0 {
		clear(s.spoken)
	}
	s.mu.Unlock()
	s.Log.Note(s.at, "= %s (%s, %s, %d turns, $%.4f)",
		l.Subtype, cmp.Or(r.TerminalReason, "-"), cmp.Or(r.StopReason, "-"), int(r.NumTurns), r.CostUSD)
	s.reportUsage(r.CostUSD, r.ModelUsage)
	if r.Interrupted() {
		s.event(Event{Kind: Notice, Text: "The turn was interrupted."})
		return
	}
	s.event(Event{Kind: TurnEnd, Text: r.Said(), Error: r.IsError})
}

// Kind says what an Event is about.
type Kind string

// The kinds of events; package agent documents them.
const (
	Started    Kind = "started"
	Taken      Kind = "taken"
	Text       Kind = "text"
	Thinking   Kind = "thinking"
	ToolInput  Kind = "tool_input"
	ToolUse    Kind = "tool_use"
	ToolResult Kind = "tool_result"
	Notice     Kind = "notice"
	TurnEnd    Kind = "turn_end"
)

// Event is one thing that happened, already redacted. The fields are those of agent.Event.
type Event struct {
	Time   time.Time
	Kind   Kind
	Text   string
	Tool   string
	ToolID string
	Input  json.RawMessage
	Error  bool
	Parent string
	Agent  string
}
