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
// nothing refers to, what stands behind a fence, titles of links, what images and tags of HTML say of themselves. The text is for reading.
// What cannot be parsed in little time is given as it is, as a block of code.
func Shown(s string) string {
	s = unified(s)
	if !Tame(s) {
		return Fenced("", s)
	}
	for range rounds {
		next := shown(s)
		if next == s || !Tame(next) {
			break
		}
		s = next
	}
	return s
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
	for i := range n.Lines().Len() {
		if l := n.Lines().At(i); footnote.Match(r.Source()[l.Start:l.Stop]) {
			return // to GitHub it is none
		}
	}
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
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(inline...),
	parser.WithParagraphTransformers(util.Prioritized(defining{}, 100)),
)

// shown takes out once what is not shown.
func shown(s string) string {
	source := []byte(parseable(s))
	pc := parser.NewContext()
	root := page.Parse(text.NewReader(source), parser.WithContext(pc))
	edits, _ := pc.Get(removed).([]edit)
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // it returns no error of its own
		if entering {
			edits = append(edits, unshown(n, source)...)
		}
		return ast.WalkContinue, nil
	})
	return unreferenced(apply(s, edits))
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

// unshown are the edits that one node takes.
func unshown(n ast.Node, source []byte) (list []edit) {
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		if n.Info != nil && string(n.Info.Segment.Value(source)) != "suggestion" {
			list = append(list, edit{span{n.Info.Segment.Start, n.Info.Segment.Stop}, ""})
		}
	case *ast.Image:
		if end := n.Pos(); end >= 0 {
			_, to := target(n, source)
			list = append(list, edit{span{end, to}, "[image]"})
		}
	case *ast.Link:
		if len(n.Title) > 0 {
			at, to := target(n, source)
			if at < to {
				list = append(list, edit{span{at, to}, "(<" + strings.NewReplacer("<", "%3C", ">", "%3E", "\n", "").Replace(string(n.Destination)) + ">)"})
			}
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

// target is where behind the text of a link or an image its address stands, with the brackets around it. Of one that is defined elsewhere it is
// the label.
func target(n ast.Node, source []byte) (from, to int) {
	at := n.Pos()
	for c := n.LastChild(); c != nil; c = c.LastChild() {
		if t, ok := c.(*ast.Text); ok {
			at = t.Segment.Stop
		}
	}
	for ; at < len(source) && source[at] != ']'; at++ {
	}
	from = min(at+1, len(source))
	if from == len(source) || source[from] != '(' && source[from] != '[' {
		return from, from
	}
	closes := map[byte]byte{'(': ')', '[': ']'}[source[from]]
	var quote byte
	for to, depth := from+1, 1; to < len(source); to++ {
		switch c := source[to]; {
		case c == '\\':
			to++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case closes == ')' && (c == '"' || c == '\'') && strings.ContainsRune(" \t\n", rune(source[to-1])):
			quote = c
		case closes == ')' && c == '<' && to == from+1:
			quote = '>'
		case c == source[from]:
			depth++
		case c == closes:
			if depth--; depth == 0 {
				return from, to + 1
			}
		}
	}
	return from, from
}

var footnote = regexp.MustCompile(`^[ >]{0,3}\[\^([^\]\s]+)\]:`)

// unreferenced takes out footnotes that nothing refers to, with all that is indented below them.
func unreferenced(s string) string {
	if !strings.Contains(s, "[^") {
		return s
	}
	all := strings.ToLower(s)
	var b strings.Builder
	out, blank := false, false
	for _, l := range read(s, commonMark).lines {
		empty := strings.TrimSpace(l.Text) == ""
		if m := footnote.FindStringSubmatch(l.Text); m != nil && l.Kind == Text {
			mark := "[^" + strings.ToLower(m[1]) + "]"
			out = strings.Count(all, mark) <= strings.Count(all, mark+":")
		} else if blank && !empty && !strings.HasPrefix(l.Text, "    ") && !strings.HasPrefix(l.Text, "\t") {
			out = false
		}
		if blank = empty; !out {
			b.WriteString(l.Text)
		}
	}
	return b.String()
}
