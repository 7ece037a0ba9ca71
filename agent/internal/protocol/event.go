package protocol

import (
	"encoding/json"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

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

// liveBlock is a text that is reported while it arrives, such as an answer that the model is writing.
type liveBlock struct {
	latest Event // its latest piece
	text   *redact.Stream
}

// piece reports a piece of a block, except for an end of it that may be the beginning of a secret. Pieces of one kind
// and tool call form a block, which endBlock ends.
func (s *Stream) piece(e Event) {
	if s.block.text == nil {
		s.block.text = s.Redactor.Stream()
	}
	if s.block.latest.Kind != e.Kind || s.block.latest.ToolID != e.ToolID {
		s.endBlock()
	}
	s.block.latest = e
	s.reportBlock(s.block.text.Write([]byte(e.Text)))
}

// endBlock reports what was held back of the current block.
func (s *Stream) endBlock() {
	if s.block.text != nil {
		s.reportBlock(s.block.text.Flush())
	}
}

func (s *Stream) reportBlock(text []byte) {
	if len(text) > 0 {
		e := s.block.latest
		e.Time, e.Text = s.now(), string(text)
		s.Handler.Event(e)
	}
}
