package agent

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lenient accepts what the CLI puts into its JSON.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// text returns the value of a JSON string, and an empty string for anything else.
func text(v jsontext.Value) string {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s, lenient) != nil {
		return ""
	}
	return s
}

// subject is what a call is about, as the tool's own argument says; empty when there is none, or none that is text.
func (t tool) subject(input []byte) string {
	v := valueOf(input, t.arg)
	if v.Kind() != '[' {
		return text(v)
	}
	// A list of what is to be done is about what is being done.
	var todos []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	}
	if json.Unmarshal(v, &todos, lenient) != nil {
		return ""
	}
	for _, status := range []string{"in_progress", "pending"} {
		for _, todo := range todos {
			if todo.Status == status {
				return todo.Content
			}
		}
	}
	return ""
}

// valueOf is the value of one of a call's arguments, nil when it has none of that name. The last of several counts, as for the CLI.
// The others are passed over without being copied: there may be megabytes of them.
func valueOf(input []byte, name string) (found jsontext.Value) {
	dec := jsontext.NewDecoder(bytes.NewReader(input), lenient)
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return found
		}
		if token.String() != name {
			err = dec.SkipValue()
		} else {
			var v jsontext.Value
			v, err = dec.ReadValue()
			found = v.Clone()
		}
		if err != nil {
			return found
		}
	}
	return found
}
