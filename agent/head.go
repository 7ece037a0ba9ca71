package agent

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// decodeHead reads a line of which only the beginning is there: the fields before the one that makes it long. ok is false when the type is
// not among them; the CLI writes it, and a request's id, first. A result of which is_error is not there passes for a failure.
func decodeHead(text []byte) (l wireLine, ok bool) {
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
