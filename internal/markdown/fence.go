package markdown

import "strings"

// Fenced is a block of code, whatever the text holds.
func Fenced(info, s string) string {
	fence := strings.Repeat("`", max(3, longestRun(s)+1))
	return fence + info + "\n" + s + "\n" + fence
}

// Span is a word in a span of code, whatever it holds.
func Span(word string) string {
	ticks := longestRun(word) + 1
	if ticks == 1 {
		return "`" + word + "`"
	}
	fence := strings.Repeat("`", ticks)
	return fence + " " + word + " " + fence
}

// longestRun is how many backticks follow each other at most.
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
