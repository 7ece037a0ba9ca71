package protocol

import (
	"bytes"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxSecret is more than a credential has that a message may cut.
	maxSecret = 16 << 10
	// maxAgents limits of how many agents the texts are remembered.
	maxAgents = 100
)

// spoken is the end of what an agent has said in texts that arrived whole. A message may be cut within a secret, and
// the next one goes on with it. It does not say so if it is a sub-agent's.
type spoken struct {
	end          string
	latest, part string // the latest text and what is shown of it, if that depends on the texts around it
}

// showText returns what may be shown of an agent's latest text.
func (s *Stream) showText(agent, text string) string {
	before := s.spoken[agent].end
	all := before + text
	now := spoken{end: all[max(0, len(all)-maxSecret):]}
	part := s.showPart(before, text)
	if part != s.Redactor.String(text) {
		now.latest, now.part = text, part
	}
	if len(s.spoken) >= maxAgents {
		clear(s.spoken) // sub-agents whose ends were not seen
	}
	s.spoken[agent] = now
	return part
}

// showPart returns what may be shown of a text that follows another one. It replaces the text in the raw log if that
// would show more.
func (s *Stream) showPart(before, text string) string {
	part := s.Redactor.Part(before, text)
	if part == s.Redactor.String(text) {
		return part
	}
	if bytes.Contains(s.logged, inQuotes(text)) {
		s.logInstead(text, part)
	} else {
		s.logged = nil // it has the text in another form
	}
	return part
}

// logInstead replaces a text in the line of the raw log.
func (s *Stream) logInstead(text, part string) {
	if text != part {
		s.logged = bytes.ReplaceAll(s.logged, inQuotes(text), inQuotes(part))
	}
}

// inQuotes returns a text as a JSON string. At worst, that replaces what is no text.
func inQuotes(text string) []byte {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return quoted
}

// showReport returns what may be shown of the report of a sub-agent, which repeats its latest text. The raw log does
// not have the report if that text has a part of a secret.
func (s *Stream) showReport(call, report string) string {
	of := s.spoken[call]
	if call == "" || of.latest == "" { // "": the main agent
		return report
	}
	s.logged = nil
	return redact.Clip(of.part, maxPreview)
}
