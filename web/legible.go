package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// sequences are what a terminal takes for orders, such as colours and titles (ECMA-48); tools print them.
var sequences = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// unseen are characters that show nothing: control characters, and marks that turn the direction of writing for what follows.
var unseen = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// hidden reports whether a character is one of the unseen, or of those that legible changes besides.
func hidden(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// legible is text without a terminal's orders, and with what else cannot be seen spelled out. static/task.js does the same.
func legible(s string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	if strings.ContainsRune(s, '\x1b') {
		s = sequences.ReplaceAllString(s, "")
	}
	return unseen.ReplaceAllStringFunc(strings.ReplaceAll(s, "\r\n", "\n"), func(c string) string {
		r, _ := utf8.DecodeRuneInString(c)
		if r < 0x100 {
			return fmt.Sprintf(`\x%02x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
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
