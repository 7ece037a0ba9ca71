package markdown

import (
	"bytes"
	stdhtml "html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	gfm "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
)

// writer writes the HTML of a page, as far as it matters for what a browser makes of the HTML that people wrote: an
// unfinished comment or attribute hides the Markdown after it, and <code> may be around paragraphs.
type writer struct {
	page   *Page
	source []byte
	unseen map[*note]bool // footnotes that are not part of the page

	html bytes.Buffer
	at   []span // where each byte of the HTML is in the source; {-1, -1} for tags of Markdown
}

// write writes a node. Images have no words, and GitHub drops footnotes that nothing refers to.
func (w *writer) write(n ast.Node) {
	switch n := n.(type) {
	case *ast.Document:
		w.writeChildren(n)
		return
	case *ast.Text:
		w.writeWords(n.Segment, n.IsRaw())
		if n.SoftLineBreak() || n.HardLineBreak() {
			w.put('\n', span{n.Segment.Stop, n.Segment.Stop})
		}
		return
	case *ast.RawHTML:
		w.writeHTML(n.Segments.Sliced(0, n.Segments.Len())...)
		return
	case *ast.HTMLBlock:
		w.writeHTML(n.Lines().Sliced(0, n.Lines().Len())...)
		if n.HasClosure() {
			w.writeHTML(n.ClosureLine)
		}
		return
	case *ast.CodeBlock:
		if l := n.Lines(); l.Len() > 0 {
			w.page.indented = append(w.page.indented, span{l.At(0).Start, l.At(l.Len() - 1).Stop})
		}
	case *ast.Image:
		return
	case *note:
		if w.unseen[n] {
			return
		}
	}
	name := w.element(n)
	switch n.Kind() {
	case ast.KindLink, ast.KindAutoLink, ast.KindFencedCodeBlock:
		w.writeTag("<" + name + ` x="">`) // its quotes can end an attribute that is not finished
	default:
		w.writeTag("<" + name + ">")
	}
	if name == "pre" {
		for _, l := range n.Lines().Sliced(0, n.Lines().Len()) {
			w.writeWords(l, true)
		}
	}
	w.writeChildren(n)
	w.writeTag("</" + name + ">")
}

func (w *writer) writeChildren(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.write(c)
	}
}

// element returns the element that a node becomes.
func (w *writer) element(n ast.Node) string {
	switch n.Kind() {
	case ast.KindCodeSpan:
		return "code"
	case ast.KindCodeBlock, ast.KindFencedCodeBlock:
		return "pre"
	case ast.KindLink, ast.KindAutoLink:
		return "a"
	case ast.KindBlockquote:
		if isAlert(n, w.source) {
			return "div"
		}
		return "blockquote"
	case ast.KindListItem, kindNote:
		return "li"
	case gfm.KindTableCell:
		return "td"
	}
	return "p"
}

var alert = regexp.MustCompile(`(?i)^\[!(?:note|tip|important|warning|caution)\][ \t]*$`)

// isAlert reports whether a quote is a note, a warning or the like, which GitHub shows as the author's own words.
func isAlert(n ast.Node, source []byte) bool {
	first := n.FirstChild()
	if n.Parent() == nil || n.Parent().Kind() != ast.KindDocument || first == nil || first.Kind() != ast.KindParagraph {
		return false
	}
	l := first.Lines().At(0)
	return alert.Match(bytes.TrimSpace(l.Value(source)))
}

func (w *writer) writeTag(tag string) {
	for i := range len(tag) {
		w.put(tag[i], span{-1, -1})
	}
}

// writeWords writes words with one sign for each that HTML would escape.
func (w *writer) writeWords(words text.Segment, code bool) {
	to := min(words.Stop, len(w.source))
	for i := words.Start; i < to; i++ {
		c, sign := w.source[i], span{i, i + 1}
		escaped := !code && c == '\\' && i+1 < to && isPunctuation(w.source[i+1])
		if escaped {
			i++
			c, sign.to = w.source[i], i+1
		}
		if c == '<' || c == '>' || c == '"' || c == '&' && escaped {
			c = '('
		}
		w.put(c, sign)
	}
}

func isPunctuation(c byte) bool { return c > ' ' && c < 0x7f && !alphanumeric(c) }

// unsafeTag matches the tags that GitHub shows as text.
var unsafeTag = regexp.MustCompile(
	`(?i)</?(?:title|textarea|style|xmp|iframe|noembed|noframes|script|plaintext)(?:[\s/>]|$)`)

func (w *writer) writeHTML(parts ...text.Segment) {
	for _, p := range parts {
		raw := bytes.Clone(w.source[p.Start:min(p.Stop, len(w.source))])
		for _, m := range unsafeTag.FindAllIndex(raw, -1) {
			raw[m[0]] = '('
		}
		for i, c := range raw {
			w.put(c, span{p.Start + i, p.Start + i + 1})
		}
	}
}

func (w *writer) put(c byte, at span) {
	w.html.WriteByte(c)
	w.at = append(w.at, at)
}

// read reads the HTML as a browser does. It hides what that does not show, and finds the mentions.
func (w *writer) read() {
	z := html.NewTokenizer(bytes.NewReader(w.html.Bytes()))
	open := elements{}
	for from := 0; ; {
		kind := z.Next()
		z.NextIsNotRawText() // what could begin such text is shown as text
		to := from + len(z.Raw())
		switch kind {
		case html.ErrorToken:
			w.hide(from, w.html.Len(), "")
			return
		case html.TextToken:
			if open.prose() {
				w.findMentions(from, to)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			open.start(string(name))
			w.bare(from, to, "<"+string(name)+">")
		case html.EndTagToken:
			name, _ := z.TagName()
			open.end(string(name))
			w.bare(from, to, "</"+string(name)+">")
		default:
			w.hide(from, to, "")
		}
		from = to
	}
}

// bare removes the attributes of a tag.
func (w *writer) bare(from, to int, tag string) {
	if tag == "<img>" {
		tag = "[image]"
	}
	if !strings.EqualFold(string(w.html.Bytes()[from:to]), tag) {
		w.hide(from, to, tag)
	}
}

// hide hides a part of the HTML, with the Markdown in it.
func (w *writer) hide(from, to int, by string) {
	s := span{-1, -1}
	for _, at := range w.at[from:to] {
		if s.from < 0 {
			s.from = at.from
		}
		s.to = max(s.to, at.to)
	}
	if s.from < 0 {
		return // Markdown made it
	}
	if to == len(w.at) {
		s.to = len(w.source)
	}
	w.page.hide(edit{s, by})
}

var entity = regexp.MustCompile(`&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);`)

// findMentions finds the mentions in a text of the HTML.
func (w *writer) findMentions(from, to int) {
	words, at := string(w.html.Bytes()[from:to]), w.at[from:to]
	if found := entity.FindAllStringIndex(words, -1); found != nil {
		words, at = decode(words, at, found)
	}
	for _, m := range findMentions(words) {
		m.span = span{at[m.from].from, at[m.to-1].to}
		w.page.mentions = append(w.page.mentions, m)
	}
}

// decode replaces the entities in a text.
func decode(s string, at []span, entities [][]int) (string, []span) {
	var b strings.Builder
	var places []span
	last := 0
	for _, m := range entities {
		b.WriteString(s[last:m[0]])
		places = append(places, at[last:m[0]]...)
		last = m[1]
		sign := stdhtml.UnescapeString(s[m[0]:m[1]])
		b.WriteString(sign)
		for range len(sign) {
			places = append(places, span{at[m[0]].from, at[m[1]-1].to})
		}
	}
	b.WriteString(s[last:])
	return b.String(), append(places, at[last:]...)
}

// elements are the open elements of a page: how many there are of each name, and the order of those that end with the
// element around them.
type elements struct {
	count map[string]int
	order []string
}

// formatting are the elements that a browser opens again behind the end of the element around them.
var formatting = map[string]bool{
	"a": true, "b": true, "big": true, "code": true, "em": true, "font": true, "i": true, "nobr": true, "s": true,
	"small": true, "strike": true, "strong": true, "tt": true, "u": true,
}

// prose reports whether GitHub looks for mentions here, and the words are the author's own.
func (e *elements) prose() bool {
	return e.count["pre"] == 0 && e.count["code"] == 0 && e.count["a"] == 0 && e.count["blockquote"] == 0
}

func (e *elements) start(name string) {
	if e.count == nil {
		e.count = map[string]int{}
	}
	if name == "a" {
		e.count[name] = 0 // a link within a link ends it
	}
	e.count[name]++
	if !formatting[name] {
		e.order = append(e.order, name)
	}
}

func (e *elements) end(name string) {
	if e.count[name] == 0 {
		return
	}
	if formatting[name] {
		e.count[name]--
		return
	}
	for {
		last := e.order[len(e.order)-1]
		e.order = e.order[:len(e.order)-1]
		e.count[last]--
		if last == name {
			return
		}
	}
}
