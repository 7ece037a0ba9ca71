package protocol

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner reads JSON in place, and skips what its caller does not ask for at a fraction of the cost of decoding it. It
// accepts only a part of what the decoder accepts: no white space between tokens, no escapes in names, and limited
// depth. It checks everything that it skips, so it accepts nothing that the decoder would refuse. Once something is not
// accepted, lost is set, and nothing that was read is of use.
type scanner struct {
	line  []byte
	at    int
	depth int
	lost  bool
}

// maxDepth is far below that of the decoder. The CLI's lines have less than ten levels, except for the input of tools.
const maxDepth = 100

// peek returns the next byte, or 0 at the end. No value begins with 0.
func (s *scanner) peek() byte {
	if s.at < len(s.line) {
		return s.line[s.at]
	}
	return 0
}

// object reads an object. member is called with the name of each member, and reads its value.
func (s *scanner) object(member func(name []byte)) {
	s.list('{', '}', func() {
		name, escaped := s.content()
		if s.lost = s.lost || escaped || s.peek() != ':'; !s.lost {
			s.at++
			member(name)
		}
	})
}

// list reads an object or an array. element reads a member or an element.
func (s *scanner) list(begin, end byte, element func()) {
	if s.depth++; s.peek() != begin || s.depth > maxDepth {
		s.lost = true
		return
	}
	if s.at++; s.peek() != end {
		for element(); s.peek() == ',' && !s.lost; element() {
			s.at++
		}
	}
	s.lost = s.lost || s.peek() != end
	s.at++
	s.depth--
}

// skip reads any value.
func (s *scanner) skip() {
	switch s.peek() {
	case '"':
		s.content()
	case '{':
		s.object(func([]byte) { s.skip() })
	case '[':
		s.list('[', ']', s.skip)
	case 't':
		s.word("true")
	case 'f':
		s.word("false")
	case 'n':
		s.word("null")
	default:
		s.number()
	}
}

// value reads any value and returns its text, which is not a copy.
func (s *scanner) value() jsontext.Value {
	from := s.at
	s.skip()
	if s.lost {
		return nil
	}
	return s.line[from:s.at:s.at]
}

func (s *scanner) word(w string) {
	s.lost = s.lost || !bytes.HasPrefix(s.line[s.at:], []byte(w))
	s.at += len(w)
}

// number reads a number, and returns its text.
func (s *scanner) number() []byte {
	from := s.at
	if s.peek() == '-' {
		s.at++
	}
	if first, n := s.peek(), s.digits(); first == '0' && n > 1 {
		s.lost = true
	}
	if s.peek() == '.' {
		s.at++
		s.digits()
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		if s.at++; s.peek() == '+' || s.peek() == '-' {
			s.at++
		}
		s.digits()
	}
	if s.lost {
		return nil
	}
	return s.line[from:s.at]
}

// digits reads one digit or more, and returns how many.
func (s *scanner) digits() int {
	from := s.at
	for '0' <= s.peek() && s.peek() <= '9' {
		s.at++
	}
	s.lost = s.lost || s.at == from
	return s.at - from
}

// content reads a string, and returns what is between its quotes, and whether that has escapes.
func (s *scanner) content() (text []byte, escaped bool) {
	if s.peek() != '"' {
		s.lost = true
		return nil, false
	}
	s.at++
	for from := s.at; ; {
		s.at += plainLength(s.line[s.at:])
		switch s.peek() {
		case '"':
			s.at++
			return s.line[from : s.at-1], escaped
		case '\\':
			n := escapeLength(s.line[s.at:])
			if s.at, escaped = s.at+n, true; n > 0 {
				continue
			}
		}
		s.lost = true
		return nil, escaped
	}
}

// plainLength returns the length of the part of text before its first quote, backslash or control character. It tests
// eight bytes at once: a subtraction from a byte that is too small sets its highest bit. It may then also change bytes
// after this one, of which only the first counts.
func plainLength(text []byte) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(text); n += 8 {
		x := binary.LittleEndian.Uint64(text[n:])
		quote, slash := x^each*'"', x^each*'\\'
		if found := ((x - each*' ') | (quote - each) | (slash - each)) &^ x & high; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for ; n < len(text); n++ {
		if c := text[n]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return n
}

// escapeLength returns the length of the escape at the beginning of text, or 0 if it is not valid.
func escapeLength(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		for i := 2; i < 6; i++ {
			if i == len(text) || !isHex(text[i]) {
				return 0
			}
		}
		return 6
	}
	return 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
