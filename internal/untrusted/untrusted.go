// Package untrusted prepares text that others wrote for an agent: it removes what a reader of the page would not see,
// and marks the rest as quoted material.
package untrusted

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/markdown"
)

// Visible returns Markdown without what GitHub does not show: hidden HTML, reference definitions, and invisible
// characters, which can hide words from people or split them for filters.
func Visible(s string) string { return strings.TrimSpace(markdown.Shown(withoutInvisible(s))) }

// Plain returns text that is not rendered, such as a title or a log, without what cannot be seen.
func Plain(s string) string { return strings.TrimSpace(withoutInvisible(s)) }

func withoutInvisible(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point,
			unicode.Variation_Selector):
			return -1
		}
		return r
	}, s)
	return withoutHiddenHTML(s)
}

// Line returns text as one visible line of at most n characters.
func Line(s string, n int) string { return Short(Plain(s), n) }

// Code returns text as inline code of Markdown, of at most n characters.
func Code(s string, n int) string { return "`" + strings.ReplaceAll(Line(s, n), "`", "'") + "`" }

// Short returns text on one line of at most n characters. What cannot be seen stays.
func Short(s string, n int) string { return Cut(strings.Join(strings.Fields(s), " "), n) }

// Blanks returns text with plain spaces in place of every other blank that Unicode has, such as a no-break space, which
// keyboards, editors and web pages put in without anyone seeing it. Forms of commands are written with plain spaces.
// The length in bytes stays the same, so a position in the result is one in the text.
func Blanks(s string) string {
	if !strings.ContainsFunc(s, isOtherBlank) {
		return s // most messages
	}
	plain := []byte(s)
	for at, r := range s {
		if isOtherBlank(r) {
			copy(plain[at:], strings.Repeat(" ", utf8.RuneLen(r)))
		}
	}
	return string(plain)
}

func isOtherBlank(r rune) bool { return r > unicode.MaxASCII && unicode.IsSpace(r) }

// Cut returns the first n characters.
func Cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

var fenceTag = regexp.MustCompile(`(?i)<(\s*/?\s*outside)`)

// Quote puts text between <outside> tags, which agents are told to treat as material and not as instructions. A tag
// inside the text that would end the quote is escaped.
func Quote(what, text string) string {
	return fmt.Sprintf("<outside what=%q>\n%s\n</outside>\n", what, fenceTag.ReplaceAllString(text, "&lt;$1"))
}

// hiddenHTML lists the constructs that a page does not show: CDATA sections, processing instructions and declarations.
// (Comments are removed first.) A prefix of another entry comes after it. If the proper end is missing, HTML accepts
// the alternative one.
var hiddenHTML = []struct{ begins, ends, or string }{{"<![CDATA[", "]]>", ">"}, {"<?", "?>", ">"}, {"<!", ">", ">"}}

// maxRounds bounds how often removing one construct may uncover another. Only deliberate nesting reaches it.
const maxRounds = 20

// withoutHiddenHTML removes comments and the constructs of hiddenHTML.
func withoutHiddenHTML(s string) string {
	for {
		before, rest, found := strings.Cut(s, "<!--")
		if !found {
			break
		}
		// An unclosed comment can hide all that follows. The remainder may form a comment again, hence the loop.
		_, after, _ := strings.Cut(rest, "-->")
		s = before + after
	}
	for range maxRounds {
		left, first := cutHidden(s)
		if first < 0 {
			return s
		}
		s = left
	}
	if _, first := cutHidden(s); first >= 0 {
		s = s[:first]
	}
	return s
}

// cutHidden removes hidden constructs once, and returns where the first one began, or -1.
func cutHidden(s string) (left string, first int) {
	var b strings.Builder
	first = -1
	code := inCodeBlock(s)
	for at := 0; at < len(s); {
		next := strings.IndexByte(s[at:], '<')
		if next < 0 {
			b.WriteString(s[at:])
			break
		}
		b.WriteString(s[at : at+next])
		at += next
		n := hiddenAt(s, at, code(at))
		if n == 0 {
			b.WriteByte('<')
			at++
			continue
		}
		if first < 0 {
			first = at
		}
		at += n
	}
	return b.String(), first
}

// hiddenAt returns the length in bytes of the hidden construct at a position, or 0. Code blocks show everything. An
// unclosed construct hides all that follows if it starts a line.
func hiddenAt(s string, at int, code bool) int {
	for _, u := range hiddenHTML {
		rest, found := strings.CutPrefix(s[at:], u.begins)
		if !found || code {
			continue
		}
		for _, end := range []string{u.ends, u.or} {
			if n := strings.Index(rest, end); n >= 0 {
				return len(u.begins) + n + len(end)
			}
		}
		if startsLine(s[:at]) {
			return len(s) - at
		}
	}
	return 0
}

// startsLine reports whether only list and quote markers precede the position on its line.
func startsLine(before string) bool {
	return strings.Trim(before[strings.LastIndexByte(before, '\n')+1:], " \t>*+.)-0123456789") == ""
}

// inCodeBlock returns a function that reports whether a position is in a code block. Positions must be passed in
// ascending order. A fence inside an HTML block does not start a code block.
func inCodeBlock(s string) func(at int) bool {
	lines := markdown.PageLines(s)
	end, in := 0, false // of the last line looked at
	return func(at int) bool {
		for ; end <= at && len(lines) > 0; lines = lines[1:] {
			in = lines[0].Kind != markdown.Text
			end += len(lines[0].Text)
		}
		return in
	}
}
