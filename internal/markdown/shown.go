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

// Shown is Markdown with the words that a page shows, and without those that it keeps in its source: definitions of links, footnotes that
// nothing refers to, what stands behind a fence, the source of
// diagrams, titles of links, what images and tags of HTML say of themselves. The text is for reading.
// What cannot be parsed in little time, or is made to hide something again and again, is given as it is, as a block of code.
func Shown(s string) string {
	s = unified(s)
	if !Tame(s) {
		return Fenced("", s)
	}
	for range rounds {
		next := shown(s)
		if next == s {
			return s
		}
		if s = next; !Tame(s) {
			break
		}
	}
	return Fenced("", s)
}

// edit is what takes the place of a part of a text.
type edit struct {
	span
	by string
}

var removed = parser.NewContextKey()

// defining takes definitions of links out of paragraphs, as goldmark does, and notes where they were.
type defining struct{}

func (defining) Transform(n *ast.Paragraph, r text.Reader, pc parser.Context) {
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

var targets = parser.NewContextKey()

// targeting parses links and images as goldmark does, and notes where behind their text the address stands, with the brackets around it.
type targeting struct{ parser.InlineParser }

func (l targeting) Parse(parent ast.Node, r text.Reader, pc parser.Context) ast.Node {
	_, from := r.Position()
	n := l.InlineParser.Parse(parent, r, pc)
	switch n.(type) {
	case *ast.Image, *ast.Link:
		_, to := r.Position()
		all, _ := pc.Get(targets).(map[ast.Node]span)
		if all == nil {
			all = map[ast.Node]span{}
			pc.Set(targets, all)
		}
		all[n] = span{from.Start + len("]"), to.Start}
	}
	return n
}

func (l targeting) CloseBlock(parent ast.Node, r text.Reader, pc parser.Context) {
	if c, ok := l.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, r, pc)
	}
}

var page = parser.NewParser(
	parser.WithBlockParsers(append(parser.DefaultBlockParsers(), util.Prioritized(notes{}, 50))...),
	parser.WithInlineParsers(append(without(inline, parser.NewLinkParser()), util.Prioritized(targeting{parser.NewLinkParser()}, 200))...),
	parser.WithParagraphTransformers(util.Prioritized(defining{}, 100)),
)

// shown takes out once what is not shown.
func shown(s string) string {
	source := []byte(parseable(s))
	pc := parser.NewContext()
	root := page.Parse(text.NewReader(source), parser.WithContext(pc))
	edits, _ := pc.Get(removed).([]edit)
	at, _ := pc.Get(targets).(map[ast.Node]span)
	f := noted{source: source, first: map[string]*note{}}
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // it returns no error of its own
		f.visit(n, entering)
		if entering {
			edits = append(edits, unshown(n, at[n], source)...)
		}
		return ast.WalkContinue, nil
	})
	return apply(s, append(edits, f.unreferenced()...))
}

// apply makes edits; of those that overlap the first.
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

// unshown are the edits that one node takes, of links and images with the place of their address.
func unshown(n ast.Node, target span, source []byte) (list []edit) {
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

// bare is HTML whose tags say nothing of themselves.
func bare(s string) string {
	return attributes.ReplaceAllStringFunc(s, func(tag string) string {
		name := attributes.FindStringSubmatch(tag)[1]
		if strings.EqualFold(name, "img") {
			return "[image]"
		}
		return "<" + name + ">"
	})
}
