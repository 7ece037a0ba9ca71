package markdown

import (
	"html"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Kind is what a line is to the parser.
type Kind uint8

// The kinds of lines. Opening and Closing are the fences around Code.
const (
	Text Kind = iota
	Opening
	Code
	Closing
)

// Line is one line of a text.
type Line struct {
	Text string // with the newline at its end
	Kind Kind

	start int      // in the text
	block *block   // of code, unless it is Text
	leaf  ast.Node // the paragraph or heading that it belongs to; nil: none
}

// block is a fenced block of code.
type block struct {
	node   *ast.FencedCodeBlock
	fence  string // the backticks or tildes
	info   string
	indent int // of the fence within what contains it
}

// document is a text as the parser sees it.
type document struct {
	text  string
	lines []Line
	code  []span // what is certainly code, in order
	live  bool   // it has HTML or images
	infos []span // what stands behind fences and has GitHub do more than show the code

	numbers map[*ast.ListItem]int // of the items of numbered lists
}

type span struct{ from, to int }

// prose takes HTML for text: Neutral escapes it, so that what GitHub parses has none. commonMark takes HTML for HTML. Emphasis, which says
// nothing about code and for which goldmark takes quadratic time, is text to both.
var (
	inline = without(parser.DefaultInlineParsers(), parser.NewEmphasisParser())
	prose  = parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(without(inline, parser.NewRawHTMLParser())...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
	commonMark = parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(inline...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
)

// without leaves one parser out.
func without(list []util.PrioritizedValue, parser any) []util.PrioritizedValue {
	return slices.DeleteFunc(slices.Clone(list), func(v util.PrioritizedValue) bool { return v.Value == parser })
}

// Lines are the lines of a text with what they are to the parser. HTML is text to it.
func Lines(s string) []Line { return read(s, prose).lines }

// PageLines are the same of a page, on which HTML is HTML.
func PageLines(s string) []Line { return read(s, commonMark).lines }

// read parses a text. Of one that is not tame everything is text, and nothing certainly code.
func read(s string, p parser.Parser) *document {
	source := parseable(s)
	d := &document{text: s, numbers: map[*ast.ListItem]int{}}
	for at := 0; at < len(s); {
		n := strings.IndexByte(source[at:], '\n') + 1
		if n == 0 {
			n = len(s) - at
		}
		d.lines = append(d.lines, Line{Text: s[at : at+n], start: at})
		at += n
	}
	if !Tame(s) {
		return d
	}
	b := []byte(source)
	w := walker{document: d, source: b}
	w.walk(p.Parse(text.NewReader(b)), 0)
	w.closings()
	slices.SortFunc(d.code, func(a, b span) int { return a.from - b.from })
	return d
}

// parseable is a text of the same length in which all ends of lines are newlines, and no character is space to the parser that is none to
// CommonMark.
func parseable(s string) string {
	b := []byte(s)
	for i, c := range b {
		switch {
		case c == '\r' && (i+1 == len(b) || b[i+1] != '\n'):
			b[i] = '\n'
		case c == '\r':
			b[i] = ' '
		case c < ' ' && c != '\t' && c != '\n':
			b[i] = '?'
		}
	}
	return string(b)
}

// maxDepth is how deep code may be nested that is left alone. GitHub's parser has limits of its own there.
const maxDepth = 20

// walker fills in what the parser has found.
type walker struct {
	*document
	source []byte
}

func (w *walker) walk(n ast.Node, depth int) {
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		w.fenced(n, depth)
		return
	case *ast.Image, *ast.RawHTML, *ast.HTMLBlock:
		w.live = true
	}
	if n.Type() == ast.TypeBlock && n.Lines() != nil && n.Lines().Len() > 0 {
		w.leaf(n, depth)
		return
	}
	number := 0
	if list, ok := n.(*ast.List); ok {
		number = list.Start
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if item, ok := c.(*ast.ListItem); ok {
			w.numbers[item] = number
			number++
		}
		w.walk(c, depth+1)
	}
}

// drawn are the words behind a fence for which GitHub shows something else than the code.
var drawn = map[string]bool{"mermaid": true, "geojson": true, "topojson": true, "stl": true, "math": true}

// infoWord is the first word behind a fence, as GitHub reads it, in small letters.
func infoWord(n *ast.FencedCodeBlock, source []byte) string {
	if n.Info == nil {
		return ""
	}
	words := strings.Fields(html.UnescapeString(string(n.Info.Segment.Value(source))))
	if len(words) == 0 {
		return ""
	}
	return strings.ToLower(words[0])
}

var fences = regexp.MustCompile("`{3,}|~{3,}")

// fenced notes a block of code.
func (w *walker) fenced(n *ast.FencedCodeBlock, depth int) {
	open := w.lineAt(n.Pos())
	line := w.lines[open]
	rest := strings.TrimRight(string(w.source[line.start:line.start+len(line.Text)]), " \n")
	m := fences.FindStringIndex(rest) // with tabs before it the node's place is not exact
	if m == nil {
		return
	}
	at := line.start + m[0]
	b := &block{node: n, fence: rest[m[0]:m[1]], info: rest[m[1]:]}
	b.indent = min(max(0, columns(w.source[line.start:at])-width(n)), 3)
	w.lines[open].Kind, w.lines[open].block = Opening, b
	word := infoWord(n, w.source)
	if word == "suggestion" || drawn[word] {
		w.infos = append(w.infos, span{n.Info.Segment.Start, n.Info.Segment.Stop})
	}
	certain := depth <= maxDepth && !drawn[word] && !w.tabbed(line.start, at)
	for _, s := range n.Lines().Sliced(0, n.Lines().Len()) {
		l := &w.lines[w.lineAt(s.Start)]
		l.Kind, l.block = Code, b
		certain = certain && !w.tabbed(l.start, s.Start)
	}
	for i := 0; certain && i < n.Lines().Len(); i++ {
		s := n.Lines().At(i)
		w.code = append(w.code, span{s.Start, min(s.Stop, len(w.source))})
	}
}

// tabbed reports whether what stands before a line of code has a tab, which parsers count differently.
func (w *walker) tabbed(from, to int) bool {
	return slices.Contains(w.source[from:max(from, to)], '\t')
}

// closings finds the fences that end blocks: the next line behind each, unless that begins something.
func (w *walker) closings() {
	for i := 1; i < len(w.lines); i++ {
		b := w.lines[i-1].block
		if b == nil || w.lines[i-1].Kind == Closing || w.lines[i].block != nil || w.lines[i].leaf != nil {
			continue
		}
		mark := strings.Trim(strings.TrimLeft(strings.TrimRight(w.lines[i].Text, " \t\r\n"), " \t>"), " \t")
		if len(mark) >= len(b.fence) && strings.Trim(mark, b.fence[:1]) == "" {
			w.lines[i].Kind, w.lines[i].block = Closing, b
		}
	}
}

// leaf notes a paragraph, a heading or a block that is code by its indentation, and the code in its lines.
func (w *walker) leaf(n ast.Node, depth int) {
	var all strings.Builder
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		all.Write(w.source[s.Start:s.Stop])
		if l := &w.lines[w.lineAt(s.Start)]; l.block == nil {
			l.leaf = n
		}
	}
	if n.Kind() == ast.KindHTMLBlock {
		return
	}
	// Without a backtick there is no code to be certain of, and nothing to search.
	certain := depth <= maxDepth && strings.Contains(all.String(), "`") && !doubtful.MatchString(all.String())
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) { // it returns no error of its own
		switch c := c.(type) {
		case *ast.Image, *ast.RawHTML:
			w.live = true
		case *ast.CodeSpan:
			for t := c.FirstChild(); entering && certain && t != nil; t = t.NextSibling() {
				if t, ok := t.(*ast.Text); ok {
					w.code = append(w.code, span{t.Segment.Start, t.Segment.Stop})
				}
			}
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
}

// doubtful is what makes GitHub see other spans of code in a paragraph than CommonMark does: tables, formulas, footnotes, an address that
// goes on through a backtick, and more backticks than its parser counts.
var doubtful = regexp.MustCompile("(?i)[|$]|\\[\\^|(?:://|www\\.|mailto:|xmpp:)[^\\s<]*`|`{50}")

func (d *document) lineAt(at int) int {
	return sort.Search(len(d.lines), func(i int) bool { return d.lines[i].start > at }) - 1
}

// columns is how wide the beginning of a line is.
func columns(b []byte) (n int) {
	for _, c := range b {
		if n++; c == '\t' {
			n = (n + 3) / 4 * 4
		}
	}
	return n
}
