package redact

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// terminalSequences matches what a terminal interprets: control sequences such as colours, strings such as titles and
// links, and escapes of two characters (ECMA-48).
var terminalSequences = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// Plain makes text valid UTF-8 and safe to show in a terminal. It removes terminal sequences, and spells out invalid
// bytes, marks that change the direction of writing, and control characters other than tab and newline. It returns text
// itself if it is already plain.
func Plain(text []byte) []byte {
	if n := plainPrefix(text); n == len(text) {
		return text
	}
	text = terminalSequences.ReplaceAll(text, nil)
	out := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		n := plainPrefix(text)
		out, text = append(out, text[:n]...), text[n:]
		switch r, size := utf8.DecodeRune(text); {
		case size == 0:
		case r == '\r' && len(text) > 1 && text[1] == '\n':
			text = text[1:]
		case r == utf8.RuneError && size == 1, r < utf8.RuneSelf:
			out, text = fmt.Appendf(out, `\x%02x`, text[0]), text[1:]
		default:
			out, text = fmt.Appendf(out, `\u%04x`, r), text[size:]
		}
	}
	return out
}

// plainPrefix returns the length of the longest prefix of text that is plain.
func plainPrefix(text []byte) int {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c >= ' ' && c < 0x7f || c == '\n' || c == '\t':
			i++
		case c < utf8.RuneSelf:
			return i
		default:
			r, size := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && size == 1 || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				return i
			}
			i += size
		}
	}
	return len(text)
}

// OneLine returns s as one line, without secrets and without characters that a terminal or a chat would interpret. It
// redacts twice: before, because a secret can hold line breaks, and after, because one can be written with invisible
// characters in between.
func (r *Redactor) OneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case unicode.In(c, unicode.Cc, unicode.Cf):
			return -1
		}
		return c
	}, r.String(s))
	return r.String(strings.Join(strings.Fields(s), " "))
}

// Clip shortens s to at most n characters. It does not read s beyond them.
func Clip(s string, n int) string {
	end := 0
	for i := range s {
		switch n--; n {
		case 0:
			end = i
		case -1:
			return s[:end] + "…"
		}
	}
	return s
}
