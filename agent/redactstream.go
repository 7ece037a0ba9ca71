package agent

// redactStream takes secrets out of a text that comes in pieces, wherever it is split: what it returns, put together, is what
// Redactor.Bytes makes of the whole. Of each piece it holds back only an end that may be the beginning of a secret, which is shorter than
// the longest known value or what a shape asks for at the least; the body of a shape is swallowed as it comes, however long. Not safe for
// concurrent use.
type redactStream struct {
	redact *Redactor
	held   []byte
	spans  []span  // of held, and hidden because of something before it
	open   charset // what comes next is hidden for as long as it is of these
	hidden bool    // the last byte that was let go was
	out    []byte
}

// stream begins a text that comes in pieces.
func (r *Redactor) stream() *redactStream { return &redactStream{redact: r} }

// Write returns what may be shown after one more piece. It is valid until the next call, and as long as piece is.
func (s *redactStream) Write(piece []byte) []byte { return s.next(piece, false) }

// Flush ends the text and returns the rest of it. Another one may follow.
func (s *redactStream) Flush() []byte {
	rest := s.next(nil, true)
	s.open, s.hidden = 0, false
	return rest
}

func (s *redactStream) next(piece []byte, last bool) []byte {
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
