package agent

import (
	"fmt"
	"regexp"
	"unicode"
	"unicode/utf8"
)

// terminalSequences are what a terminal takes for orders: control sequences such as colours, strings such as titles and links, and
// escapes of two characters (ECMA-48).
var terminalSequences = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// plain makes text harmless to a terminal that shows it, and valid UTF-8: sequences are left out, and any other control character but
// tab and newline, a byte that is no text, or a mark that turns the direction of writing, is spelled out. What is plain is returned as it is.
func plain(text []byte) []byte {
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

// plainPrefix is how much of text at its beginning is plain.
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
