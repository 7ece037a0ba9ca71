package term

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Cells is the number of columns that text without control characters takes: two for a wide character (Unicode's UAX #11, which most
// emoji are as well), none for an accent that stands on the one before.
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

// Cut shortens text to at most n columns, with an ellipsis where something is missing; n of 0 or less: it stays as it is.
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

// Pad fills text up with blanks to n columns.
func Pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-Cells(s)))
}
