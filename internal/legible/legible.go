// Package legible makes text of agents, their tools and strangers fit to be shown: in a page or on a terminal.
//
// It promises that what it gives is valid UTF-8 in which nothing moves a cursor, sets a colour or a title, or turns the direction of
// writing. It does not escape HTML. Text may come in pieces: an order that is cut in two is spelled out, not obeyed.
package legible

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// sequences are what a terminal takes for orders, such as colours and titles (ECMA-48); tools print them.
var sequences = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// unseen are characters that show nothing: control characters, and marks that turn the direction of writing for what follows.
var unseen = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// hidden reports whether a character is one of the unseen, or of those that Spelled changes besides.
func hidden(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Text is text without a terminal's orders, and with what else cannot be seen spelled out. The console's static/task.js does the same. It is for
// text alone: what looks like an order may swallow the markup behind it.
func Text(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd") // a lone byte of 0x9b is an order to some terminals
	if strings.ContainsRune(s, '\x1b') {
		s = sequences.ReplaceAllString(s, "")
	}
	return Spelled(s)
}

// Spelled is s with what cannot be seen spelled out. It takes nothing away, so that it may be markup.
func Spelled(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	return unseen.ReplaceAllStringFunc(strings.ReplaceAll(s, "\r\n", "\n"), func(c string) string {
		r, _ := utf8.DecodeRuneInString(c)
		if r < 0x100 {
			return fmt.Sprintf(`\x%02x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// JSON is a JSON text that a terminal may show: what cannot be seen is escaped as JSON does it, so that it is the same text to programs.
func JSON(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	return unseen.ReplaceAllStringFunc(strings.ReplaceAll(s, "\r\n", "\n"), func(c string) string {
		r, _ := utf8.DecodeRuneInString(c)
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// Line is Text in one line.
func Line(s string) string { return strings.Join(strings.Fields(Text(s)), " ") }
