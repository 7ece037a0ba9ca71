package markdown

import (
	"html"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
)

// nothing is a space of no width, which keeps a sign from meaning anything and cannot be seen.
const nothing = "\u200b"

var (
	image     = regexp.MustCompile(`!+\[`)
	tag       = regexp.MustCompile(`\\*<[A-Za-z/!?]`)
	address   = regexp.MustCompile(`^<(?i:https?://[^\s<>]+|mailto:[^\s<>]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>`)
	ownMarker = regexp.MustCompile(`(?i)<(!--\s*errand:)`)
	// at is what can be an @ in Markdown; GitHub looks for mentions after it has rendered. Entities of HTML need no semicolon.
	at = regexp.MustCompile(`@|&commat;|&#[0-9]+;?|&#[xX][0-9a-fA-F]+;?`)
)

// rounds is how often a change may lead to another one. Nobody comes to more of them by accident.
const rounds = 5

// Neutral is Markdown that has no effects where GitHub renders it: it pings nobody, loads no image, has no HTML, holds no marker of ours, and
// ends each block of code that it begins. Blocks that GitHub draws, or offers to commit, are plain code. What the parser is sure is code stays as it is. Neutral text is returned as it is.
func Neutral(s string) string {
	s = Closed(settle(legible.Text(unified(s)), escape))
	if read(s, commonMark).live || Closed(s) != s {
		return fenced(s)
	}
	return s
}

// NeutralLine is the same for one line that is put into a sentence.
func NeutralLine(s string) string {
	const before = "x " // so that it is no block of any kind
	n := settle(before+legible.Line(s), escape)
	if out, ok := strings.CutPrefix(n, before); ok && !read(n, commonMark).live {
		return out
	}
	return doubt(legible.Line(s))
}

// Links is Markdown whose images are links. Code stays as it is.
func Links(s string) string {
	return settle(s, func(d *document) string {
		return d.rewrite(func(prose string) string { return image.ReplaceAllString(prose, "[") }, func(code string) string { return code })
	})
}

// unified is a text in which newlines alone end lines.
func unified(s string) string { return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s) }

// settle changes a text until nothing is left to change: what is escaped can make code of what was none, or the other way round.
func settle(s string, change func(*document) string) string {
	if !Tame(s) {
		return fenced(s)
	}
	for range rounds {
		next := change(read(s, prose))
		if next == s {
			return s
		}
		if s = next; !Tame(s) {
			break
		}
	}
	return fenced(s)
}

// fenced shows a text as it is.
func fenced(s string) string { return Fenced("", ownMarker.ReplaceAllString(s, "<"+nothing+"$1")) }

// escape makes prose neutral, takes markers of ours out of code, and from behind fences what has GitHub do more than show the code.
func escape(d *document) string {
	if len(d.infos) > 0 {
		var edits []edit
		for _, s := range d.infos {
			edits = append(edits, edit{s, ""})
		}
		return apply(d.text, edits)
	}
	return d.rewrite(neutralProse, func(code string) string { return ownMarker.ReplaceAllString(code, "<"+nothing+"$1") })
}

// rewrite changes prose by one function and what is certainly code by another.
func (d *document) rewrite(prose, code func(string) string) string {
	var b strings.Builder
	last := 0
	for _, c := range d.code {
		if c.from < last || c.to <= c.from {
			continue
		}
		b.WriteString(prose(d.text[last:c.from]))
		b.WriteString(code(d.text[c.from:c.to]))
		last = c.to
	}
	b.WriteString(prose(d.text[last:]))
	return b.String()
}

// neutralProse turns images into links, which nobody follows by looking, shows HTML instead of obeying it, and pings nobody.
func neutralProse(s string) string {
	s = image.ReplaceAllString(s, "[")
	return Unping(tagsShown(s, "&lt;"))
}

// doubt is neutral whatever is code in it.
func doubt(s string) string {
	s = image.ReplaceAllStringFunc(s, func(m string) string { return strings.TrimSuffix(m, "[") + nothing + "[" })
	return Unping(tagsShown(s, "<"+nothing))
}

// tagsShown replaces each < with which HTML could begin.
func tagsShown(s, by string) string {
	var b strings.Builder
	last := 0
	for _, m := range tag.FindAllStringIndex(s, -1) {
		sign := m[1] - 2 // of the <
		if (sign-m[0])%2 == 1 || address.MatchString(s[sign:]) {
			continue // it is escaped already, or around an address
		}
		b.WriteString(s[last:sign] + by)
		last = sign + 1
	}
	return b.String() + s[last:]
}

// Unping puts a space of no width behind every @ that could begin a mention: all but those within a word, as in an address.
func Unping(s string) string {
	var b strings.Builder
	last := 0
	for _, m := range at.FindAllStringIndex(s, -1) {
		if m[0] > 0 && alphanumeric(s[m[0]-1]) || html.UnescapeString(s[m[0]:m[1]]) != "@" || strings.HasPrefix(s[m[1]:], nothing) {
			continue
		}
		b.WriteString(s[last:m[1]] + nothing)
		last = m[1]
	}
	return b.String() + s[last:]
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
