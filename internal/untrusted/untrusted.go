// Package untrusted prepares text that others wrote for an agent: it removes what a reader of the page would not see, and marks the rest
// as quoted material.
package untrusted

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/errand-fleet/errand/internal/markdown"
)

// Visible returns Markdown without what GitHub does not show: hidden HTML, reference definitions, and invisible characters, which can
// hide words from people or split them for filters.
func Visible(s string) string { return strings.TrimSpace(markdown.Shown(withoutInvisible(s))) }

// Plain returns text that is not rendered, such as a title or a log, without what cannot be seen.
func Plain(s string) string { return strings.TrimSpace(withoutInvisible(s)) }

func withoutInvisible(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			return -1
		}
		return r
	}, s)
	return withoutHiddenHTML(s)
}

// Line returns text as one visible line of at most n characters.
func Line(s string, n int) string { return Cut(strings.Join(strings.Fields(Plain(s)), " "), n) }

// Cut returns the first n characters.
func Cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

var fenceTag = regexp.MustCompile(`(?i)<(\s*/?\s*outside)`)

// Quote puts text between <outside> tags, which agents are told to treat as material and not as instructions. A tag inside the text that
// would end the quote is escaped.
func Quote(what, text string) string {
	return fmt.Sprintf("<outside what=%q>\n%s\n</outside>\n", what, fenceTag.ReplaceAllString(text, "&lt;$1"))
}
