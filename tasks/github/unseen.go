package github

import (
	"strings"

	"github.com/errand-fleet/errand/internal/markdown"
)

// unseen is what of HTML no page shows besides comments: sections of CDATA, instructions and declarations. A longer beginning comes before one
// that it begins with. Where an end is missing, HTML is content with the other one.
var unseen = []struct{ begins, ends, or string }{{"<![CDATA[", "]]>", ">"}, {"<?", "?>", ">"}, {"<!", ">", ">"}}

// maxUnseen is how often what is left of a text may make up something new that is not shown. Nobody comes to that by accident.
const maxUnseen = 20

// shownHTML is a text without comments and without that.
func shownHTML(s string) string {
	for {
		before, rest, found := strings.Cut(s, "<!--")
		if !found {
			break
		}
		// One that is not closed can hide all that follows. What is left may make up a comment again, hence the loop.
		_, after, _ := strings.Cut(rest, "-->")
		s = before + after
	}
	for range maxUnseen {
		left, first := cutUnseen(s)
		if first < 0 {
			return s
		}
		s = left
	}
	if _, first := cutUnseen(s); first >= 0 {
		s = s[:first]
	}
	return s
}

// cutUnseen takes out what is unseen, and says where the first of it began; -1: there was none.
func cutUnseen(s string) (left string, first int) {
	var b strings.Builder
	first = -1
	code := codeIn(s)
	for at := 0; at < len(s); {
		next := strings.IndexByte(s[at:], '<')
		if next < 0 {
			b.WriteString(s[at:])
			break
		}
		b.WriteString(s[at : at+next])
		at += next
		n := unseenAt(s, at, code(at))
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

// unseenAt is how long what begins at a place and is not shown is, in bytes; 0 if it is. In blocks of code all is. What is not closed can hide
// all that follows, if it begins a line.
func unseenAt(s string, at int, code bool) int {
	for _, u := range unseen {
		rest, found := strings.CutPrefix(s[at:], u.begins)
		if !found || code {
			continue
		}
		for _, end := range []string{u.ends, u.or} {
			if n := strings.Index(rest, end); n >= 0 {
				return len(u.begins) + n + len(end)
			}
		}
		if beginsLine(s[:at]) {
			return len(s) - at
		}
	}
	return 0
}

// beginsLine reports whether what comes next is the first of its line, but for marks of lists and quotes.
func beginsLine(before string) bool {
	return strings.Trim(before[strings.LastIndexByte(before, '\n')+1:], " \t>*+.)-0123456789") == ""
}

// codeIn tells of places in a text, from left to right, whether they are in a block of code. A fence in a block of HTML begins none.
func codeIn(s string) func(at int) bool {
	lines := markdown.PageLines(s)
	end, in := 0, false // of the line that was looked at last
	return func(at int) bool {
		for ; end <= at && len(lines) > 0; lines = lines[1:] {
			in = lines[0].Kind != markdown.Text
			end += len(lines[0].Text)
		}
		return in
	}
}
