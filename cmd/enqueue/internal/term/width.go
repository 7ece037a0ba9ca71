package term

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Cells returns the number of columns that text without control characters takes: two for a wide character (Unicode UAX
// #11, which includes most emoji), none for a combining mark.
func Cells(s string) (n int) {
	for _, r := range s {
		n += cells(r)
	}
	return n
}

func cells(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut shortens text to at most n columns and marks the cut with an ellipsis. If n is 0 or less, the text is unchanged.
func Cut(s string, n int) string {
	if n <= 0 || Cells(s) <= n {
		return s
	}
	used := 0
	for i, r := range s {
		if used += cells(r); used > n-1 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
	}
	return s
}

// Pad appends blanks to text up to n columns.
func Pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-Cells(s)))
}
