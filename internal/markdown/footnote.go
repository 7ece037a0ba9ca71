package markdown

import (
	"regexp"
	"slices"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// goldmark's extension is not used: it takes quadratic time for references, and loses the positions of footnotes.

var (
	footnote  = regexp.MustCompile(`^\[\^([^\]\s]+)\]:[ \t]*`)
	reference = regexp.MustCompile(`\\*\[\^([^\]\s]+)\]`)
)

// note is the definition of a footnote.
type note struct {
	ast.BaseBlock
	span
	label string
	refs  []string // the labels that it refers to
}

var kindNote = ast.NewNodeKind("Footnote")

func (n *note) Kind() ast.NodeKind    { return kindNote }
func (n *note) Dump(s []byte, at int) { ast.DumpHelper(n, s, at, nil, nil) }

// notes parses definitions of footnotes, also in quotes and lists, as GitHub does.
type notes struct{}

func (notes) Trigger() []byte { return []byte{'['} }

func (notes) Open(_ ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, seg := r.PeekLine()
	at := pc.BlockOffset()
	if at < 0 {
		return nil, parser.NoChildren
	}
	m := footnote.FindSubmatchIndex(line[at:])
	if m == nil {
		return nil, parser.NoChildren
	}
	n := &note{label: util.ToLinkReference(line[at+m[2] : at+m[3]]), span: span{seg.Start + at - seg.Padding, seg.Stop}}
	r.Advance(at + m[1])
	return n, parser.HasChildren
}

func (notes) Continue(n ast.Node, r text.Reader, _ parser.Context) parser.State {
	line, seg := r.PeekLine()
	if !util.IsBlank(line) {
		at, padding := util.IndentPosition(line, r.LineOffset(), 4)
		if at < 0 {
			return parser.Close
		}
		r.AdvanceAndSetPadding(at, padding)
	}
	if n, ok := n.(*note); ok {
		n.to = max(n.to, seg.Stop)
	}
	return parser.Continue | parser.HasChildren
}

func (notes) Close(ast.Node, text.Reader, parser.Context) {}
func (notes) CanInterruptParagraph() bool                 { return true }
func (notes) CanAcceptIndentedLine() bool                 { return false }

// noted collects the footnotes of a text and the references to them. It reads each word once.
type noted struct {
	source []byte
	open   []*note          // the footnotes around the current node
	first  map[string]*note // by label; GitHub shows only the first
	all    []*note
	page   []string // the labels that text outside footnotes refers to
}

func (f *noted) visit(n ast.Node, entering bool) {
	if n, ok := n.(*note); ok {
		f.visitNote(n, entering)
		return
	}
	if !entering {
		return
	}
	if t, ok := n.(*ast.Text); ok {
		f.visitText(t)
	}
	if len(f.open) > 0 && n.Type() == ast.TypeBlock && n.Lines() != nil && n.Lines().Len() > 0 {
		in := f.open[len(f.open)-1] // a paragraph may continue in lines that are not indented
		in.to = max(in.to, n.Lines().At(n.Lines().Len()-1).Stop)
	}
}

func (f *noted) visitNote(n *note, entering bool) {
	if entering {
		f.open = append(f.open, n)
		return
	}
	f.open = f.open[:len(f.open)-1]
	if len(f.open) > 0 {
		in := f.open[len(f.open)-1]
		in.to = max(in.to, n.to)
	}
	if f.first[n.label] == nil {
		f.first[n.label] = n
	}
	f.all = append(f.all, n)
}

// visitText finds references in a run of text, which excludes code and addresses.
func (f *noted) visitText(t *ast.Text) {
	if before, ok := t.PreviousSibling().(*ast.Text); ok && before.Segment.Stop == t.Segment.Start || t.Parent().Kind() == ast.KindCodeSpan {
		return
	}
	from, to := t.Segment.Start, t.Segment.Stop
	for next, ok := t.NextSibling().(*ast.Text); ok && next.Segment.Start == to; next, ok = next.NextSibling().(*ast.Text) {
		to = next.Segment.Stop
	}
	for _, m := range reference.FindAllSubmatchIndex(f.source[from:to], -1) {
		label := f.source[from+m[2] : from+m[3]]
		if escapes := m[2] - m[0] - len("[^"); escapes%2 == 1 {
			continue
		}
		refs := &f.page
		if len(f.open) > 0 {
			refs = &f.open[len(f.open)-1].refs
		}
		*refs = append(*refs, util.ToLinkReference(label))
	}
}

// unreferenced returns edits that remove the footnotes that the page does not refer to, directly or through other
// footnotes.
func (f *noted) unreferenced() (edits []edit) {
	shown := map[*note]bool{}
	for todo := slices.Clone(f.page); len(todo) > 0; {
		n := f.first[todo[len(todo)-1]]
		if todo = todo[:len(todo)-1]; n != nil && !shown[n] {
			shown[n] = true
			todo = append(todo, n.refs...)
		}
	}
	for _, n := range f.all {
		if shown[n] {
			continue
		}
		by := ""
		if n.from > 0 && f.source[n.from-1] != '\n' && f.source[n.to-1] == '\n' {
			by = "\n" // a list marker or quote sign precedes it on its line
		}
		edits = append(edits, edit{span{n.from, n.to}, by})
	}
	return edits
}
