package web

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// sequences are what a terminal takes for orders, such as colours and titles (ECMA-48); tools print them.
var sequences = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// legible is text without a terminal's orders, with the other control characters shown, and without marks that turn the direction of writing
// for what follows. static/task.js does the same.
func legible(s string) string {
	if strings.ContainsRune(s, '\x1b') {
		s = sequences.ReplaceAllString(s, "")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ':
			return '␀' + r // the pictures of control characters
		case r == 0x7f:
			return '␡'
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// spelled writes a tool's input for people: a line per argument, texts as they are. What is no object stays JSON.
func spelled(input json.RawMessage) string {
	if len(input) == 0 {
		return ""
	}
	in := json.NewDecoder(bytes.NewReader(input))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return legible(string(input))
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
			return legible(string(input))
		}
		text := string(value)
		if json.Unmarshal(value, &text) == nil && strings.ContainsRune(text, '\n') {
			text = "\n" + text
		}
		_, _ = io.WriteString(&b, key+": "+text+"\n") // memory takes everything
	}
	return legible(strings.TrimSuffix(b.String(), "\n"))
}
