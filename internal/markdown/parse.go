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

// Kind is the role of a line.
type Kind uint8

// The kinds of lines. Opening and Closing are the fences around Code.
const (
	Text Kind = iota
	Opening
	Code
	Closing
)

// Line is a line of a text.
type Line struct {
	Text string // with its newline
	Kind Kind

	start int      // in the text
	block *block   // the block of code; nil for Text
	leaf  ast.Node // the paragraph or heading, or nil
}

// block is a fenced block of code.
type block struct {
	node   *ast.FencedCodeBlock
	fence  string // the backticks or tildes
	info   string
	indent int // of the fence in its container
}

// document is a parsed text.
type document struct {
	text  string
	lines []Line
	code  []span // text that every parser takes for code, in order
	live  bool   // it has HTML or images
	infos []span // info strings for which GitHub does more than show the code

	targets map[ast.Node]span     // the addresses of links and images, with their parentheses or brackets
	numbers map[*ast.ListItem]int // of items of numbered lists
}

type span struct{ from, to int }

// prose parses HTML as text: Neutral escapes it, so that GitHub finds none. commonMark parses it as HTML. Neither
// parses emphasis, which does not affect code and for which goldmark takes quadratic time.
var (
	inline = append(without(parser.DefaultInlineParsers(), parser.NewEmphasisParser(), parser.NewLinkParser()),
		util.Prioritized(linkParser{parser.NewLinkParser()}, 200))
	prose = parser.NewParser(
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

// without returns the list without some parsers.
func without(list []util.PrioritizedValue, parsers ...any) []util.PrioritizedValue {
	return slices.DeleteFunc(slices.Clone(list), func(v util.PrioritizedValue) bool {
		return slices.Contains(parsers, v.Value)
	})
}

var linkTargets = parser.NewContextKey()

// linkParser parses links and images, and records where their addresses are.
type linkParser struct{ parser.InlineParser }

func (l linkParser) Parse(parent ast.Node, r text.Reader, pc parser.Context) ast.Node {
	_, from := r.Position()
	n := l.InlineParser.Parse(parent, r, pc)
	switch n.(type) {
	case *ast.Image, *ast.Link:
		_, to := r.Position()
		all, _ := pc.Get(linkTargets).(map[ast.Node]span)
		if all == nil {
			all = map[ast.Node]span{}
			pc.Set(linkTargets, all)
		}
		all[n] = span{from.Start + len("]"), to.Start}
	}
	return n
}

func (l linkParser) CloseBlock(parent ast.Node, r text.Reader, pc parser.Context) {
	if c, ok := l.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, r, pc)
	}
}

// Lines returns the lines of a text. HTML is parsed as text.
func Lines(s string) []Line { return read(s, prose).lines }

// read parses a text. A text that is not tame has only lines of kind Text, and no code.
func read(s string, p parser.Parser) *document {
	source := parseable(s)
	d := &document{text: s, numbers: map[*ast.ListItem]int{}}
	at := 0
	for line := range strings.Lines(source) {
		d.lines = append(d.lines, Line{Text: s[at : at+len(line)], start: at})
		at += len(line)
	}
	if !Tame(s) {
		return d
	}
	b := []byte(source)
	w := walker{document: d, source: b}
	pc := parser.NewContext()
	w.walk(p.Parse(text.NewReader(b), parser.WithContext(pc)), 0)
	d.targets, _ = pc.Get(linkTargets).(map[ast.Node]span)
	w.closings()
	slices.SortFunc(d.code, func(a, b span) int { return a.from - b.from })
	return d
}

// parseable returns a text of the same length in which all lines end with newlines, and without control characters,
// some of which goldmark takes for space and CommonMark does not.
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

// maxDepth is the deepest nesting at which code is left unchanged. GitHub's parser limits nesting.
const maxDepth = 20

// walker fills in a document from the parsed tree.
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

// drawn are the info strings for which GitHub draws the code.
var drawn = map[string]bool{"mermaid": true, "geojson": true, "topojson": true, "stl": true, "math": true}

// infoWord returns the first word of the info string as GitHub reads it, in lower case.
func infoWord(n *ast.FencedCodeBlock, source []byte) string {
	if n.Info == nil {
		return ""
	}
	for word := range strings.FieldsSeq(html.UnescapeString(string(n.Info.Segment.Value(source)))) {
		return strings.ToLower(word)
	}
	return ""
}

var fences = regexp.MustCompile("`{3,}|~{3,}")

// fenced records a block of code.
func (w *walker) fenced(n *ast.FencedCodeBlock, depth int) {
	open := w.lineAt(n.Pos())
	line := w.lines[open]
	rest := strings.TrimRight(string(w.source[line.start:line.start+len(line.Text)]), " \n")
	m := fences.FindStringIndex(rest) // the node's position is not exact after tabs
	if m == nil {
		return
	}
	at := line.start + m[0]
	b := &block{node: n, fence: rest[m[0]:m[1]], info: rest[m[1]:]}
	b.indent = min(max(0, columns(w.source[line.start:at])-len(containers(n, indentation))), 3)
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

// tabbed reports whether the indentation has a tab, whose width parsers count differently.
func (w *walker) tabbed(from, to int) bool {
	return slices.Contains(w.source[from:max(from, to)], '\t')
}

// closings finds the closing fence of each block: the line after its code, unless that line begins another block.
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

// leaf records a paragraph, a heading or an indented block of code, and the code spans in it.
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
	certain := depth <= maxDepth && strings.Contains(all.String(), "`") && !doubtful.MatchString(all.String())
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
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

// doubtful matches what makes GitHub find other code spans in a paragraph than CommonMark: tables, formulas, footnotes,
// a URL with a backtick, and more backticks than its parser counts.
var doubtful = regexp.MustCompile("(?i)[|$]|\\[\\^|(?:://|www\\.|mailto:|xmpp:)[^\\s<]*`|`{50}")

func (d *document) lineAt(at int) int {
	return sort.Search(len(d.lines), func(i int) bool { return d.lines[i].start > at }) - 1
}

// columns returns the width of text that may have tabs.
func columns(b []byte) (n int) {
	for _, c := range b {
		if n++; c == '\t' {
			n = (n + 3) / 4 * 4
		}
	}
	return n
}
