package protocol

import "github.com/errand-fleet/errand/agent/internal/redact"

// liveBlock is a text that is reported while it arrives, such as an answer that the model is writing.
type liveBlock struct {
	latest Event // its latest piece
	text   *redact.Stream
}

// blocks are the texts that are reported while they arrive. The answer goes on in the next message where the maximum of
// tokens cut it, perhaps within a secret, and a thought may come between.
type blocks struct {
	answer liveBlock
	aside  liveBlock // a thought, or the input of a tool call
}

// piece reports a piece of a block, except for an end of it that may be the beginning of a secret. Only its text may
// have secrets. Pieces of one kind and tool call form a block, which endBlock ends.
func (s *Stream) piece(e Event) {
	b := &s.blocks.aside
	if e.Kind == Text {
		b = &s.blocks.answer
	}
	if b.text == nil {
		b.text = s.Redactor.Stream()
	}
	if b.latest.Kind != e.Kind || b.latest.ToolID != e.ToolID {
		s.end(b)
	}
	b.latest = e
	s.reportBlock(b, b.text.Write([]byte(e.Text)))
}

// endBlock reports what was held back of the current block. An answer that its message cut, or may have cut, is not at
// its end.
func (s *Stream) endBlock(answer bool) {
	s.Log.EndText(thinks)
	s.end(&s.blocks.aside)
	if answer {
		s.Log.EndText("")
		s.end(&s.blocks.answer)
	}
}

func (s *Stream) end(b *liveBlock) {
	if b.text != nil {
		s.reportBlock(b, b.text.Break()) // it may have been broken off
	}
}

func (s *Stream) reportBlock(b *liveBlock, text []byte) {
	if len(text) > 0 {
		e := b.latest
		e.Time, e.Text = s.at, string(text)
		s.Handler.Event(e)
	}
}
