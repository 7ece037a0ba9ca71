package redact

// Stream removes secrets from text that arrives in pieces, wherever the text is split: its output, joined, equals
// Redactor.Bytes of the whole text. It holds back only the end of a piece that may be the beginning of a secret. That
// end is shorter than the longest known value and the minimum length of a shape; the body of a shape is dropped as it
// arrives, however long it is. A Stream is not safe for concurrent use.
type Stream struct {
	redact *Redactor
	held   []byte
	spans  []span  // parts of held that are hidden because of text before it
	open   charset // the following bytes are hidden as long as they are in one of these sets
	hidden bool    // the last byte that was returned was hidden
	out    []byte
}

// Stream returns a Stream for a new text.
func (r *Redactor) Stream() *Stream { return &Stream{redact: r} }

// Write adds a piece and returns the text that can be shown. The result is valid until the next call, and only as long
// as piece is.
func (s *Stream) Write(piece []byte) []byte { return s.next(piece, false) }

// Flush ends the text and returns the rest of it. The Stream can then be used for another text.
func (s *Stream) Flush() []byte {
	rest := s.next(nil, true)
	s.open, s.hidden = 0, false
	return rest
}

func (s *Stream) next(piece []byte, last bool) []byte {
	text, spans := piece, s.spans
	if len(s.held) > 0 {
		s.held = append(s.held, piece...)
		text = s.held
	}
	if old := len(text) - len(piece); s.open != 0 && len(piece) > 0 {
		var n int
		if n, s.open = s.open.follow(piece); n > 0 {
			spans = append(spans, span{old, old + n})
		}
	}
	found := s.redact.find(text, last)
	spans, s.open = append(spans, found.spans...), s.open|found.open
	show := text[:found.settled]
	if len(spans) > 0 || len(s.held) > 0 {
		s.out, s.hidden = hide(s.out[:0], show, spans, s.hidden)
		show = s.out
	} else if len(show) > 0 {
		s.hidden = false
	}
	s.spans = s.spans[:0]
	for _, p := range spans {
		if p.to > found.settled {
			s.spans = append(s.spans, span{max(0, p.from-found.settled), p.to - found.settled})
		}
	}
	s.held = append(s.held[:0], text[found.settled:]...)
	return show
}
