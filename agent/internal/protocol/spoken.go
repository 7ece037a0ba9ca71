package protocol

import (
	"bytes"
	"maps"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxSecret is more than a credential has that a message may cut.
	maxSecret = 16 << 10
	// maxSpoken limits how many texts of sub-agents are remembered.
	maxSpoken = 1000
)

// showText returns what may be shown of a text that arrived whole, and of one agent's texts of this kind is the next.
// A message may be cut within a secret, and the next one goes on with it. It does not say so if it is a sub-agent's.
func (s *Stream) showText(of, text string) string {
	before := s.spoken[of]
	if end := s.Redactor.Open(before + text); end == "" {
		delete(s.spoken, of)
	} else {
		if len(s.spoken) >= maxSpoken {
			maps.DeleteFunc(s.spoken, func(of, _ string) bool { return of != "" })
		}
		s.spoken[of] = strings.Clone(end[:min(len(end), maxSecret)])
	}
	return s.showPart(before, text)
}

// showPart returns what may be shown of a text that follows another one. It replaces the text in the raw log if that
// would show more.
func (s *Stream) showPart(before, text string) string {
	part := s.Redactor.Part(before, text)
	if part == s.Redactor.String(text) {
		return part
	}
	if quoted := inQuotes(text); bytes.Contains(s.logged, quoted) {
		s.logged = bytes.ReplaceAll(s.logged, quoted, inQuotes(part))
	} else {
		s.logged = nil // it has the text in another form
	}
	return part
}

// inQuotes returns a text as a JSON string. At worst, that replaces what is no text.
func inQuotes(text string) []byte {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return quoted
}
