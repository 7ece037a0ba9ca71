package agent

import "github.com/errand-fleet/errand/agent/internal/redact"

// liveBlock is a text that is handed on as it comes, such as an answer that is being written.
type liveBlock struct {
	of   Event // of its latest piece
	text *redact.Stream
}

// piece hands on a piece of a block, but for an end of it that may be the beginning of a secret. Pieces of one kind and tool call belong
// together; settle ends them.
func (s *stream) piece(e Event) {
	if s.block.text == nil {
		s.block.text = s.redact.Stream()
	}
	if s.block.of.Kind != e.Kind || s.block.of.ToolID != e.ToolID {
		s.settle()
	}
	s.block.of = e
	s.show(s.block.text.Write([]byte(e.Text)))
}

// settle ends a block, and hands on what was held back of it.
func (s *stream) settle() {
	if s.block.text != nil {
		s.show(s.block.text.Flush())
	}
}

func (s *stream) show(text []byte) {
	if len(text) > 0 {
		e := s.block.of
		e.Time, e.Text = s.now(), string(text)
		s.emit(e)
	}
}
