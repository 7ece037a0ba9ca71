package github

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/errand-fleet/errand/internal/markdown"
)

// Text crosses two borders here. What others wrote goes to the agent without what a reader of the page would not see (visible) and
// marked as theirs (outside). What the agent wrote goes to the page without effects on anybody (markdown.Neutral).

// visible is Markdown without what GitHub does not show: HTML that is none of the page's, what only the source has, and characters without a shape,
// with which words can be hidden from people or split from filters.
func visible(s string) string { return strings.TrimSpace(markdown.Shown(shapely(s))) }

// plainly is text that GitHub does not render, such as a title or a log, without what cannot be seen.
func plainly(s string) string { return strings.TrimSpace(shapely(s)) }

func shapely(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			return -1
		}
		return r
	}, s)
	return shownHTML(s)
}

// line is text in one visible line of at most n characters.
func line(s string, n int) string {
	return cut(strings.Join(strings.Fields(plainly(s)), " "), n)
}

// cut keeps the first n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

var fenceTag = regexp.MustCompile(`(?i)<(\s*/?\s*outside)`)

// outside fences text that others wrote. A tag inside that would end the fence is made harmless.
func outside(what, text string) string {
	return fmt.Sprintf("<outside what=%q>\n%s\n</outside>\n", what, fenceTag.ReplaceAllString(text, "&lt;$1"))
}
