package markdown

import (
	"slices"
	"strings"
	"unicode"
)

// Fenced returns a block of code with any content.
func Fenced(info, s string) string {
	fence := strings.Repeat("`", max(3, longestRun(s)+1))
	return fence + info + "\n" + s + "\n" + fence
}

// Span returns a code span with any content.
func Span(word string) string {
	ticks := longestRun(word) + 1
	if ticks == 1 {
		return "`" + word + "`"
	}
	fence := strings.Repeat("`", ticks)
	return fence + " " + word + " " + fence
}

// longestRun returns the length of the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// Bounds of what is parsed. goldmark takes quadratic time for nested blocks and for brackets left open in a paragraph.
const (
	maxText      = 256 << 10 // bytes
	maxParagraph = 64 << 10  // bytes without a blank line
	maxOpen      = 1000      // brackets in a paragraph
	maxNested    = 64        // quote signs in a line, list markers and footnote marks
	maxIndent    = 400       // columns before a line; every two can be a list
)

// Tame reports whether a text can be parsed in little time.
func Tame(s string) bool {
	if len(s) > maxText {
		return oneBlock(s)
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
			return oneBlock(s)
		}
	}
	return true
}

// shallow reports whether a line opens few nested quotes, footnotes and lists.
func shallow(line string) bool {
	if strings.Count(line, ">") > maxNested || strings.Count(line, "]:") > maxNested {
		return false
	}
	words := strings.Fields(line)
	return len(words) <= maxNested ||
		slices.ContainsFunc(words[:maxNested], func(w string) bool { return strings.ContainsFunc(w, unicode.IsLetter) })
}

// oneBlock reports whether a text is a single block of code.
func oneBlock(s string) bool {
	s = strings.TrimSuffix(s, "\n")
	fence := s[:len(s)-len(strings.TrimLeft(s, "`"))]
	inside, ok := strings.CutSuffix(s[len(fence):], "\n"+fence)
	return len(fence) >= 3 && ok && strings.HasPrefix(inside, "\n") && !strings.Contains(inside, fence)
}
