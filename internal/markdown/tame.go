package markdown

import (
	"slices"
	"strings"
	"unicode"
)

// What is parsed has bounds, because a hostile text costs more than its length: goldmark takes quadratic time for what is nested and for
// what is left open within a paragraph.
const (
	maxText      = 256 << 10 // bytes
	maxParagraph = 64 << 10  // bytes without a blank line
	maxOpen      = 1000      // brackets in a paragraph
	maxNested    = 64        // signs of quotation in a line, and marks of lists, which stand apart, and of footnotes
	maxIndent    = 400       // columns before a line, each two of which can be a list
)

// Tame reports whether a text can be parsed in little time.
func Tame(s string) bool {
	if len(s) > maxText {
		return whole(s)
	}
	paragraph, open := 0, 0
	for line := range strings.Lines(s) {
		bare := strings.TrimLeft(line, " \t>")
		if strings.TrimSpace(bare) == "" {
			paragraph, open = 0, 0
		}
		paragraph += len(line)
		open += strings.Count(line, "[")
		if paragraph > maxParagraph || open > maxOpen || len(line)-len(bare) > maxIndent || !shallow(line) {
			return whole(s)
		}
	}
	return true
}

// shallow reports whether a line does not open very many quotes, footnotes or lists, one in another.
func shallow(line string) bool {
	if strings.Count(line, ">") > maxNested || strings.Count(line, "]:") > maxNested {
		return false
	}
	words := strings.Fields(line)
	return len(words) <= maxNested ||
		slices.ContainsFunc(words[:maxNested], func(w string) bool { return strings.ContainsFunc(w, unicode.IsLetter) })
}

// whole reports whether a text is one block of code, of whatever.
func whole(s string) bool {
	s = strings.TrimSuffix(s, "\n")
	fence := s[:len(s)-len(strings.TrimLeft(s, "`"))]
	inside, ok := strings.CutSuffix(s[len(fence):], "\n"+fence)
	return len(fence) >= 3 && ok && strings.HasPrefix(inside, "\n") && !strings.Contains(inside, fence)
}
