// Package markdown splits and neutralises Markdown that strangers may have influenced, for all places that errand posts
// to or reads from.
//
//   - A CommonMark parser (goldmark) decides what is code and what is prose.
//   - Neutral returns text that mentions no one, loads nothing, draws nothing, offers no change to commit and has no
//     HTML when GitHub renders it. Code that every parser takes for code stays as it is, as do definitions of links and
//     footnotes, which GitHub shows only where something refers to them.
//   - Shown returns the words that a page shows, without those that only its source has.
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

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/errand-fleet/errand/internal/legible"
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
	s = Closed(settle(legible.Text(unified(s)), escape))
	if read(s, commonMark).live || Closed(s) != s {
		return fenced(s)
	}
	return s
}

// NeutralLine does the same for one line that becomes part of a sentence.
func NeutralLine(s string) string {
	const before = "x " // so that the line begins no block
	n := settle(before+legible.Line(s), escape)
	if out, ok := strings.CutPrefix(n, before); ok && !read(n, commonMark).live {
		return out
	}
	s = image.ReplaceAllStringFunc(legible.Line(s), func(m string) string {
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

// Shown returns Markdown with the words that a page shows. It removes definitions of links, footnotes that nothing
// refers to, info strings, the source of diagrams, titles of links, and the attributes of images and HTML tags. The
// result is for reading. A text that is not tame, or that hides something again after several rounds, is returned as a
// block of code.
func Shown(s string) string {
	s, ok := repeat(unified(s), removeHidden)
	if !ok {
		return Fenced("", s)
	}
	return s
}

// edit replaces a part of a text.
type edit struct {
	span
	by string
}

var removed = parser.NewContextKey()

// definitions removes the definitions of links from paragraphs, as goldmark does, and records where they were.
type definitions struct{}

func (definitions) Transform(n *ast.Paragraph, r text.Reader, pc parser.Context) {
	before := slices.Clone(n.Lines().Sliced(0, n.Lines().Len()))
	parser.LinkReferenceParagraphTransformer.Transform(n, r, pc)
	left := before[len(before)-1].Stop
	if n.Parent() != nil && n.Lines().Len() > 0 {
		left = n.Lines().At(0).Start
	}
	list, _ := pc.Get(removed).([]edit)
	for _, l := range before {
		if l.Start < left {
			list = append(list, edit{span{l.Start, min(l.Stop, left)}, ""})
		}
	}
	pc.Set(removed, list)
}

var page = parser.NewParser(
	parser.WithBlockParsers(append(parser.DefaultBlockParsers(), util.Prioritized(notes{}, 50))...),
	parser.WithInlineParsers(inline...),
	parser.WithParagraphTransformers(util.Prioritized(definitions{}, 100)),
)

// removeHidden removes what a page does not show, once.
func removeHidden(s string) string {
	source := []byte(parseable(s))
	pc := parser.NewContext()
	root := page.Parse(text.NewReader(source), parser.WithContext(pc))
	edits, _ := pc.Get(removed).([]edit)
	at, _ := pc.Get(linkTargets).(map[ast.Node]span)
	f := noted{source: source, first: map[string]*note{}}
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		f.visit(n, entering)
		if entering {
			edits = append(edits, hiddenParts(n, at[n], source)...)
		}
		return ast.WalkContinue, nil
	})
	return apply(s, append(edits, f.unreferenced()...))
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

var (
	attributes = regexp.MustCompile(`(?s)<(/?[A-Za-z][A-Za-z0-9-]*)((?:"[^"]*"|'[^']*'|[^<>"'])*)>`)
	halfTag    = regexp.MustCompile(`(?s)<[A-Za-z][A-Za-z0-9-]*\s[^<>]*$`)
)

// hiddenParts returns the edits for one node. target is the address of a link or an image.
func hiddenParts(n ast.Node, target span, source []byte) (list []edit) {
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		if n.Info != nil && string(n.Info.Segment.Value(source)) != "suggestion" {
			list = append(list, edit{span{n.Info.Segment.Start, n.Info.Segment.Stop}, ""})
		}
		if l := n.Lines(); drawn[infoWord(n, source)] && l.Len() > 0 {
			list = append(list, edit{span{l.At(0).Start, l.At(l.Len() - 1).Stop}, "[diagram]\n"})
		}
	case *ast.Image:
		if from := n.Pos(); from >= 0 && from < target.to {
			list = append(list, edit{span{from, target.to}, "[image]"})
		}
	case *ast.Link:
		if len(n.Title) > 0 && target.from < target.to {
			list = append(list, edit{target, "(<" +
				strings.NewReplacer("<", "%3C", ">", "%3E", "\n", "").Replace(string(n.Destination)) + ">)"})
		}
	case *ast.RawHTML:
		for _, s := range n.Segments.Sliced(0, n.Segments.Len()) {
			list = append(list, edit{span{s.Start, s.Stop}, ""})
		}
		if len(list) > 0 {
			list[0].by = bare(string(n.Segments.Value(source)))
		}
	case *ast.HTMLBlock:
		if l := n.Lines(); l.Len() > 0 {
			from, to := l.At(0).Start, l.At(l.Len()-1).Stop
			if n.HasClosure() {
				to = n.ClosureLine.Stop
			}
			list = append(list, edit{span{from, to}, halfTag.ReplaceAllString(bare(string(source[from:to])), "")})
		}
	}
	return list
}

// bare returns HTML whose tags have no attributes.
func bare(s string) string {
	return attributes.ReplaceAllStringFunc(s, func(tag string) string {
		name := attributes.FindStringSubmatch(tag)[1]
		if strings.EqualFold(name, "img") {
			return "[image]"
		}
		return "<" + name + ">"
	})
}
