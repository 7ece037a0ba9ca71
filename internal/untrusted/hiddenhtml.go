package untrusted

import (
	"strings"

	"github.com/errand-fleet/errand/internal/markdown"
)

// hiddenHTML lists the constructs that a page does not show: CDATA sections, processing instructions and declarations. (Comments are
// removed first.) A prefix of another entry comes after it. If the proper end is missing, HTML accepts the alternative one.
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

// hiddenAt returns the length in bytes of the hidden construct at a position, or 0. Code blocks show everything. An unclosed construct
// hides all that follows if it starts a line.
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

// inCodeBlock returns a function that reports whether a position is in a code block. Positions must be passed in ascending order. A fence
// inside an HTML block does not start a code block.
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
