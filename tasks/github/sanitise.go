package github

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"
)

// Text crosses two borders here. What others wrote goes to the agent without what a reader of the page would not see (visible) and
// marked as theirs (outside). What the agent wrote goes to the page without effects on anybody (harmless).

// visible is Markdown without what GitHub does not show: HTML that is none of the page's, and characters without a shape, with which words can
// be hidden from people or split from filters.
func visible(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(shownHTML(s))
}

// line is text in one visible line of at most n characters.
func line(s string, n int) string {
	return cut(strings.Join(strings.Fields(visible(s)), " "), n)
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

var (
	ownMarker = regexp.MustCompile(`(?i)<(!--\s*errand:)`)
	// at is what can be an @ in Markdown and in HTML, where a number needs no end; GitHub looks for mentions after it has rendered.
	at = regexp.MustCompile(`@|&commat;|&#[0-9]+;?|&#[xX][0-9a-fA-F]+;?`)
)

// harmless is Markdown of the agent's that pings nobody and holds no marker of ours. Blocks of code stay as they are, for whoever
// copies them: nobody is pinged from there.
func harmless(text string) string {
	var b strings.Builder
	var f fences
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text) // to Markdown all of them end a line
	for l := range strings.Lines(ownMarker.ReplaceAllString(text, "&lt;$1")) {
		if !f.code(l) {
			l = unping(still(l))
		}
		b.WriteString(l)
	}
	return b.String()
}

// harmlessLine is the same of one line, in which nothing is a block of code.
func harmlessLine(l string) string { return unping(still(ownMarker.ReplaceAllString(l, "&lt;$1"))) }

// loads is whatever makes a page fetch an address as soon as somebody looks at it: what an agent that was talked into it knows could
// leave in that address.
var loads = regexp.MustCompile(`(?i)<(\s*/?\s*(?:img|picture|source|video|audio|svg|image|iframe|object|embed|link|style))\b`)

// still turns images into links, which nobody follows by looking, and lets people see comments: one that is not closed would hide whatever stands
// below, the next finding for instance.
func still(l string) string {
	l = strings.NewReplacer("![", "[", "<!--", "&lt;!--").Replace(l)
	return loads.ReplaceAllString(l, "&lt;$1")
}

// unping puts a zero-width space behind every @ that could begin a mention: all but those within a word, as in an address.
func unping(l string) string {
	var b strings.Builder
	last := 0
	for _, m := range at.FindAllStringIndex(l, -1) {
		if m[0] > 0 && alphanumeric(l[m[0]-1]) || html.UnescapeString(l[m[0]:m[1]]) != "@" || strings.HasPrefix(l[m[1]:], "\u200b") {
			continue
		}
		b.WriteString(l[last:m[1]] + "\u200b")
		last = m[1]
	}
	return b.String() + l[last:]
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
