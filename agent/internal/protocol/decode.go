package protocol

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lenient accepts what a tool's output can put into the CLI's JSON.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// essentials are the fields of a line that are read even if others have an unexpected shape. A failed result that
// cannot be read must not pass for a success, and a question must be answered.
type essentials struct {
	Type      string         `json:"type"`
	Subtype   string         `json:"subtype"`
	SessionID jsontext.Value `json:"session_id"`
	RequestID jsontext.Value `json:"request_id"`
	IsError   jsontext.Value `json:"is_error"`
	Result    jsontext.Value `json:"result"`
	State     jsontext.Value `json:"state"`
}

// decode reads one line into l and overwrites all of it. It returns false unless the line is a JSON object with a type.
func (l *outputLine) decode(line []byte) (ok bool) {
	*l = outputLine{}
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	if json.Unmarshal(line, l, lenient) == nil {
		return l.Type != ""
	}
	*l = outputLine{}
	var v essentials
	if json.Unmarshal(line, &v, lenient) != nil || v.Type == "" {
		return false
	}
	l.Type, l.Subtype, l.SessionID, l.RequestID = v.Type, v.Subtype, stringValue(v.SessionID), stringValue(v.RequestID)
	l.State, l.Text, l.odd = stringValue(v.State), stringValue(v.Result), true
	l.IsError = v.Type == "result" && string(v.IsError) != "false"
	return true
}

// stringValue returns the value of a JSON string, and an empty string for anything else.
func stringValue(v jsontext.Value) string {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s, lenient) != nil {
		return ""
	}
	return s
}

// decodeHead reads the beginning of a line: the fields before the one that makes it too long. It returns false unless
// the type is among them; the CLI writes the type and the ID of a request first. A result whose is_error is missing
// counts as a failure.
func decodeHead(text []byte) (l outputLine, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), lenient)
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return l, false
	}
	end, judged := dec.InputOffset(), false
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			break
		}
		known := name.String() == "is_error"
		if dec.SkipValue() != nil {
			break
		}
		end, judged = dec.InputOffset(), judged || known
	}
	ok = l.decode(append(bytes.Clone(text[:end]), '}'))
	l.IsError = l.IsError || l.Type == "result" && !judged
	return l, ok
}
