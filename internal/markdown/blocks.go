package markdown

import (
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	if before, ok := t.PreviousSibling().(*ast.Text); ok && before.Segment.Stop == t.Segment.Start ||
		t.Parent().Kind() == ast.KindCodeSpan {
		return
	}
	from, to := t.Segment.Start, t.Segment.Stop
	for next, ok := t.NextSibling().(*ast.Text); ok &&
		next.Segment.Start == to; next, ok = next.NextSibling().(*ast.Text) {
		to = next.Segment.Stop
	}
	for _, m := range reference.FindAllSubmatchIndex(f.source[from:to], -1) {
		label := f.source[from+m[2] : from+m[3]]
		if escapes := m[2] - m[0] - len("[^"); escapes%2 == 1 || inImage(t) {
			continue
		}
		refs := &f.page
		if len(f.open) > 0 {
			refs = &f.open[len(f.open)-1].refs
		}
		*refs = append(*refs, util.ToLinkReference(label))
	}
}

// inImage reports whether a node is part of the description of an image.
func inImage(n ast.Node) bool {
	for ; n != nil && n.Type() == ast.TypeInline; n = n.Parent() {
		if n.Kind() == ast.KindImage {
			return true
		}
	}
	return false
}

// unreferenced returns the footnotes that the page does not refer to, directly or through other footnotes.
func (f *noted) unreferenced() map[*note]bool {
	unseen := map[*note]bool{}
	for _, n := range f.all {
		unseen[n] = true
	}
	for todo := slices.Clone(f.page); len(todo) > 0; {
		n := f.first[todo[len(todo)-1]]
		if todo = todo[:len(todo)-1]; n != nil && unseen[n] {
			delete(unseen, n)
			todo = append(todo, n.refs...)
		}
	}
	return unseen
}

// removal returns the edit that removes a footnote.
func (n *note) removal(source []byte) edit {
	by := ""
	if n.from > 0 && source[n.from-1] != '\n' && source[n.to-1] == '\n' {
		by = "\n" // a list marker or quote sign precedes it on its line
	}
	return edit{n.span, by}
}

// inWord matches markup between the letters of a word. after matches what follows a word that closes an issue; a word
// in a path is followed by something else.
const (
	inWord = `[^\w\s\pZ` + zeroWidth + `]*`
	after  = `[^\w\s\pZ./-]*[\s\pZ:]`
)

var (
	// closing matches a word that closes the issue after it, in a text that signs returns.
	closing = regexp.MustCompile(`(?i)\b(?:` + spelt("close") + `(?:` + inWord + `[sd])?|` + spelt("fix") + `(?:` +
		inWord + `e` + inWord + `[sd])?|` +
		spelt("resolve") + `(?:` + inWord + `[sd])?)\b` + after)
	issue = regexp.MustCompile(`[#/-]` + inWord + `[0-9]`)
	sign  = regexp.MustCompile(`(?s)\\[[:punct:]]|&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);|.`)
)

func spelt(word string) string { return strings.Join(strings.Split(word, ""), inWord) }

// Unclosing returns neutral text that closes no issue as the description of a merged pull request. If it may refer to
// issues, each word that closes them gets a zero-width space after its first letter, however the word is composed.
func Unclosing(s string) string { return settle(s, unclose) }

func unclose(d *document) string {
	// A page does not show the addresses of links, unless GitHub finds no link there.
	var edits []edit
	found := false
	for _, hidden := range [][]span{d.code, slices.AppendSeq(slices.Clone(d.code), maps.Values(d.targets))} {
		shown, from := signs(d.text, hidden)
		found = found || issue.MatchString(shown)
		for _, m := range closing.FindAllStringIndex(shown, -1) {
			i := from[m[0]+1]
			edits = append(edits, edit{span{i, i}, zeroWidth})
		}
	}
	if !found {
		return d.text
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	return apply(d.text, slices.Compact(edits))
}

// signs returns the characters that a page shows, without the hidden parts, and the offset in the text of each byte.
func signs(s string, hidden []span) (string, []int) {
	hides := make([]bool, len(s))
	for _, h := range hidden {
		for i := h.from; i < h.to; i++ {
			hides[i] = true
		}
	}
	var b strings.Builder
	var from []int
	for _, m := range sign.FindAllStringIndex(s, -1) {
		if hides[m[0]] {
			continue
		}
		c := strings.TrimPrefix(s[m[0]:m[1]], `\`)
		switch {
		case c == "": // a single backslash
			c = `\`
		case len(c) > 1 && c[0] == '&':
			if c = html.UnescapeString(c); utf8.RuneCountInString(c) != 1 {
				c = "&"
			}
		}
		if c == "_" { // which regexp counts as part of a word
			c = "*"
		}
		b.WriteString(c)
		from = append(from, slices.Repeat([]int{m[0]}, len(c))...)
	}
	return b.String(), from
}

// Fenced returns a block of code with any content.
func Fenced(info, s string) string {
	fence := strings.Repeat("`", max(3, longestRun(s)+1))
	return fence + info + "\n" + s + "\n" + fence
}

// Span returns a code span with any content.
func Span(word string) string {
	ticks := longestRun(word) + 1
	if ticks == 1 {
		return "`" + word + "`"
	}
	fence := strings.Repeat("`", ticks)
	return fence + " " + word + " " + fence
}

// longestRun returns the length of the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// Bounds of what is parsed. goldmark takes quadratic time for nested blocks, and for nested and unfinished links in a
// paragraph. It gives each row of a table as many cells as the head has, however short the row is.
const (
	maxText      = 256 << 10 // bytes
	maxParagraph = 64 << 10  // bytes without a blank line
	maxOpen      = 1000      // brackets open in a paragraph when one is closed
	maxLinks     = 1000      // addresses of links in a paragraph
	maxCells     = 100_000   // of tables, if all paragraphs were tables
	maxNested    = 64        // quote signs in a line, list markers and footnote marks
	maxIndent    = 400       // columns before a line; every two can be a list
)

// Tame reports whether a text can be parsed quickly.
func Tame(s string) bool { return tameLength(s) == len(s) || oneBlock(s) }

// tameLength returns the length of the lines that can be parsed quickly, up to the first that cannot.
func tameLength(s string) int {
	at, paragraph := 0, 0
	var b brackets
	var c cells
	for line := range strings.Lines(s) {
		bare := strings.TrimLeft(line, " \t>")
		if strings.TrimSpace(bare) == "" {
			paragraph, b = 0, brackets{}
			c.end()
		}
		paragraph += len(line)
		b.add(line)
		c.add(line)
		if paragraph > maxParagraph || c.total() > maxCells || b.links > maxLinks || b.deepest > maxOpen ||
			len(line)-len(bare) > maxIndent || !shallow(line) || at+len(line) > maxText {
			return at
		}
		at += len(line)
	}
	return at
}

// brackets counts the brackets of a paragraph.
type brackets struct {
	open    int
	deepest int // how many were open at most when one was closed
	links   int // that may begin an address
}

func (b *brackets) add(line string) {
	b.links += strings.Count(line, "](")
	for i := range len(line) {
		switch line[i] {
		case '[':
			b.open++
		case ']':
			b.deepest = max(b.deepest, b.open)
			b.open = max(0, b.open-1)
		}
	}
}

// cells counts the cells that a text would have if its paragraphs were tables.
type cells struct {
	before        int // in paragraphs that have ended
	rows, columns int // of the current one
}

func (c *cells) add(line string) {
	c.rows++
	c.columns = max(c.columns, strings.Count(line, "|"))
}

func (c *cells) end() { *c = cells{before: c.total()} }

func (c *cells) total() int { return c.before + c.rows*c.columns }

// shallow reports whether a line opens few nested quotes, footnotes and lists.
func shallow(line string) bool {
	if strings.Count(line, "]:") > maxNested {
		return false
	}
	markers := line
	if end := strings.IndexFunc(line, unicode.IsLetter); end >= 0 && !strings.Contains(line, "]:") {
		markers = line[:end]
	}
	return strings.Count(markers, ">") <= maxNested && len(strings.Fields(markers)) <= maxNested
}

// oneBlock reports whether a text is a single block of code.
func oneBlock(s string) bool {
	s = strings.TrimSuffix(s, "\n")
	fence := s[:len(s)-len(strings.TrimLeft(s, "`"))]
	inside, ok := strings.CutSuffix(s[len(fence):], "\n"+fence)
	return len(fence) >= 3 && ok && strings.HasPrefix(inside, "\n") && !strings.Contains(inside, fence)
}
