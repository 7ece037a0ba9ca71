package markdown

import (
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

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
			list = append(list, edit{target, "(<" + strings.NewReplacer("<", "%3C", ">", "%3E", "\n", "").Replace(string(n.Destination)) + ">)"})
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
