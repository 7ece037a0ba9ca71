package web

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
)

// spelled writes a tool's input for people: a line per argument, texts as they are. What is no object stays JSON.
func spelled(input json.RawMessage) string {
	if len(input) == 0 {
		return ""
	}
	in := json.NewDecoder(bytes.NewReader(input))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return legible.Text(string(input))
	}
	var b strings.Builder
	for in.More() {
		name, err := in.Token()
		var value json.RawMessage
		if err == nil {
			err = in.Decode(&value)
		}
		key, _ := name.(string)
		if err != nil {
			return legible.Text(string(input))
		}
		text := string(value)
		if json.Unmarshal(value, &text) == nil && strings.ContainsRune(text, '\n') {
			text = "\n" + text
		}
		_, _ = io.WriteString(&b, key+": "+text+"\n") // memory takes everything
	}
	return legible.Text(strings.TrimSuffix(b.String(), "\n"))
}
