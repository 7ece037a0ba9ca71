// Package markdown splits and neutralises Markdown that strangers may have influenced, for all places that errand posts
// to or reads from.
//
//   - A CommonMark parser (goldmark) decides what is code and what is prose.
//   - Neutral returns text that mentions no one, loads nothing, draws nothing, offers no change to commit and has no
//     HTML when GitHub renders it. Code that every parser takes for code stays as it is, as do definitions of links and
//     footnotes, which GitHub shows only where something refers to them.
//   - Page is what people wrote on GitHub, parsed once: what its reader sees, without what only its source has, and
//     whom it mentions.
//   - Split cuts at block boundaries where possible. It closes a cut code block and reopens it in the next part.
//   - Time is bounded by the length of the text: a text that would take longer is shown as one block of code.
//
// The package does not render Markdown and does not know Slack's notation. All functions are pure and may be called
// from any goroutine.
package markdown

import (
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/display"
)

// zeroWidth is an invisible space that takes the meaning from the sign before or after it.
const zeroWidth = "\u200b"

var (
	image     = regexp.MustCompile(`!+\[`)
	tag       = regexp.MustCompile(`\\*<[A-Za-z/!?]`)
	address   = regexp.MustCompile(`^<(?i:https?://[^\s<>]+|mailto:[^\s<>]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>`)
	ownMarker = regexp.MustCompile(`(?i)<(!--\s*errand:)`)
	// at matches what may be an @ once it is rendered, which is when GitHub looks for mentions. HTML entities need no
	// semicolon.
	at = regexp.MustCompile(`@|&commat;|&#[0-9]+;?|&#[xX][0-9a-fA-F]+;?`)
)

// rounds is how often a change may make another one necessary. Only hostile text needs more.
const rounds = 5

// Neutral returns Markdown that has no effects when GitHub renders it: it mentions no one, loads no image, has no HTML,
// contains no marker of errand, and closes each block of code. Blocks that GitHub draws, or offers to commit, become
// plain code. Text that every parser takes for code stays as it is. Neutral text is returned unchanged.
func Neutral(s string) string {
	s = Closed(settle(display.Text(unified(s)), escape))
	if read(s, commonMark).live || Closed(s) != s {
		return fenced(s)
	}
	return s
}

// NeutralLine does the same for one line that becomes part of a sentence.
func NeutralLine(s string) string {
	const before = "x " // so that the line begins no block
	n := settle(before+display.Line(s), escape)
	if out, ok := strings.CutPrefix(n, before); ok && !read(n, commonMark).live {
		return out
	}
	s = image.ReplaceAllStringFunc(display.Line(s), func(m string) string {
		return strings.TrimSuffix(m, "[") + zeroWidth + "["
	})
	return Unping(showTags(s, "<"+zeroWidth)) // neutral, whatever is code in it
}

// Links returns Markdown with links instead of images. Code stays as it is.
func Links(s string) string {
	return settle(s, func(d *document) string {
		return d.rewrite(func(prose string) string { return image.ReplaceAllString(prose, "[") },
			func(code string) string { return code })
	})
}

// unified returns a text in which all lines end with newlines.
func unified(s string) string { return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s) }

// settle changes a text until it stays the same: an escaped sign can make code of prose, or prose of code. A text that
// is not tame, or that does not stay the same, becomes a block of code.
func settle(s string, change func(*document) string) string {
	s, ok := repeat(s, func(s string) string { return change(read(s, prose)) })
	if !ok {
		return fenced(s)
	}
	return s
}

// repeat changes a text until it stays the same. It returns false if the text is not tame or changes too often.
func repeat(s string, change func(string) string) (string, bool) {
	for range rounds {
		if !Tame(s) {
			return s, false
		}
		next := change(s)
		if next == s {
			return s, true
		}
		s = next
	}
	return s, false
}

// fenced returns a text as a block of code.
func fenced(s string) string { return Fenced("", hideMarkers(s)) }

// hideMarkers disables errand's markers.
func hideMarkers(s string) string { return ownMarker.ReplaceAllString(s, "<"+zeroWidth+"$1") }

// escape neutralises prose, disables markers in code, and removes info strings for which GitHub does more than show the
// code.
func escape(d *document) string {
	if len(d.infos) > 0 {
		var edits []edit
		for _, s := range d.infos {
			edits = append(edits, edit{s, ""})
		}
		return apply(d.text, edits)
	}
	return d.rewrite(func(prose string) string {
		return Unping(showTags(image.ReplaceAllString(prose, "["), "&lt;"))
	}, hideMarkers)
}

// rewrite changes prose with one function and code with another.
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

// showTags replaces each < that could begin HTML.
func showTags(s, by string) string {
	var b strings.Builder
	last := 0
	for _, m := range tag.FindAllStringIndex(s, -1) {
		sign := m[1] - 2 // of the <
		if (sign-m[0])%2 == 1 || address.MatchString(s[sign:]) {
			continue // it is escaped already, or begins an address
		}
		b.WriteString(s[last:sign] + by)
		last = sign + 1
	}
	return b.String() + s[last:]
}

// Unping adds a zero-width space after each @ that could begin a mention. An @ within a word, as in an e-mail address,
// begins none.
func Unping(s string) string {
	var b strings.Builder
	last := 0
	for _, m := range at.FindAllStringIndex(s, -1) {
		if m[0] > 0 && alphanumeric(s[m[0]-1]) || html.UnescapeString(s[m[0]:m[1]]) != "@" ||
			strings.HasPrefix(s[m[1]:], zeroWidth) {
			continue
		}
		b.WriteString(s[last:m[1]] + zeroWidth)
		last = m[1]
	}
	return b.String() + s[last:]
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// edit replaces a part of a text.
type edit struct {
	span
	by string
}

// apply makes edits. If two overlap, it makes the first.
func apply(s string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	last := 0
	for _, e := range edits {
		if e.from < last || e.to > len(s) {
			continue
		}
		b.WriteString(s[last:e.from] + e.by)
		last = e.to
	}
	return b.String() + s[last:]
}
