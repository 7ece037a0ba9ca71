package agent

// pieces is a text that is handed on as it comes, such as a block of an answer that is being written.
type pieces struct {
	of   Event // all but the text
	text *redactStream
}

// piece hands on a piece of a text, but for an end of it that may be the beginning of a secret. Pieces of one kind and call belong together;
// settle ends them.
func (s *stream) piece(e Event) {
	if s.block.text == nil {
		s.block.text = s.redact.stream()
	}
	if s.block.of.Kind != e.Kind || s.block.of.ToolID != e.ToolID {
		s.settle()
	}
	s.block.of = e
	s.show(s.block.text.Write([]byte(e.Text)))
}

// settle hands on what was held back.
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
