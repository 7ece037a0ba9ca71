package markdown

import (
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gfm "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/errand-fleet/errand/internal/display"
)

// Page is a comment or a description on GitHub, parsed once: what a reader of the page sees of it, and whom it
// mentions. It is immutable.
type Page struct {
	source   string
	hidden   []bool         // of each byte, whether the page does not show it
	by       map[int]string // what stands for hidden bytes, at the first of them
	indented []span         // blocks of code that only their indentation marks
	mentions []mention
	rest     string // what would take too long to parse
}

// ReadPage parses Markdown as GitHub does. Of a text that would take too long to parse, it reads the beginning and
// takes the rest for code.
func ReadPage(s string) Page {
	s = unified(strings.ToValidUTF8(s, "\ufffd"))
	n := tameLength(s)
	if oneBlock(s) {
		n = len(s)
	}
	p := Page{source: s[:n], hidden: make([]bool, n), by: map[int]string{}, rest: s[n:]}
	source := []byte(parseable(p.source))
	pc := parser.NewContext()
	root := page.Parse(text.NewReader(source), parser.WithContext(pc))

	edits, _ := pc.Get(removed).([]edit)
	targets, _ := pc.Get(linkTargets).(map[ast.Node]span)
	f := noted{source: source, first: map[string]*note{}}
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		f.visit(n, entering)
		if entering {
			edits = append(edits, hiddenParts(n, targets[n], source)...)
		}
		return ast.WalkContinue, nil
	})
	unseen := f.unreferenced()
	for n := range unseen {
		edits = append(edits, n.removal(source))
	}
	for _, e := range edits {
		p.hide(e)
	}

	w := writer{page: &p, source: source, unseen: unseen}
	w.write(root)
	w.read()
	return p
}

// hide replaces a part of the page.
func (p *Page) hide(e edit) {
	to := min(e.to, len(p.hidden))
	if e.from < to && e.by != "" && !p.hidden[e.from] {
		p.by[e.from] = e.by
	}
	for i := e.from; i < to; i++ {
		if i > e.from && p.hidden[i] {
			delete(p.by, i)
		}
		p.hidden[i] = true
	}
}

// Without returns the page without the mentions of a login, and how many it has of that and of other ones. Mentions in
// code, links and quotations do not count and stay: GitHub notifies nobody of the first two, and the third are others'
// words. An App is mentioned with or without the [bot] of its login.
func (p Page) Without(login string) (rest Page, ours, others int) {
	login = strings.TrimSuffix(login, "[bot]")
	rest = p
	rest.hidden = slices.Clone(p.hidden)
	for _, m := range p.mentions {
		switch {
		case p.hidden[m.from]:
		case login != "" && strings.EqualFold(m.login, login):
			rest.hide(edit{m.span, ""})
			ours++
		default:
			others++
		}
	}
	return rest, ours, others
}

// String returns what the page shows as Markdown: without hidden HTML, definitions of links, footnotes that nothing
// refers to, info strings, the source of diagrams, table cells beyond those of the header, titles of links, attributes
// of images and tags, and invisible characters. It is for reading. Space around it is trimmed, but for the indentation
// of code.
func (p Page) String() string {
	var b strings.Builder
	first := -1 // the offset of the first character that is no space
	for i, hidden := range p.hidden {
		b.WriteString(p.by[i])
		if hidden {
			continue
		}
		b.WriteByte(p.source[i])
		if first < 0 && !strings.ContainsRune(" \t\n", rune(p.source[i])) {
			first = i
		}
	}
	if p.rest != "" {
		b.WriteString(Fenced("", strings.TrimSuffix(p.rest, "\n")))
	}
	s := strings.TrimRight(display.Words(b.String()), " \t\n")
	if slices.ContainsFunc(p.indented, func(code span) bool { return code.from <= first && first < code.to }) {
		begin := len(s) - len(strings.TrimLeft(s, " \t\n"))
		return s[strings.LastIndexByte(s[:begin], '\n')+1:]
	}
	return strings.TrimSpace(s)
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
	parser.WithParagraphTransformers(util.Prioritized(definitions{}, 100),
		util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
)

// hiddenParts returns the edits for one node of Markdown. target is the address of a link or an image.
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
	case *gfm.TableRow:
		if e, ok := excessCells(n, source); ok {
			list = append(list, e)
		}
	}
	return list
}

// excessCells returns the edit that removes what follows the last cell of a row and the sign behind it. GitHub shows as
// many cells as the header has.
func excessCells(n *gfm.TableRow, source []byte) (e edit, ok bool) {
	last := n.LastChild()
	if last == nil || last.Lines() == nil || last.Lines().Len() == 0 {
		return edit{}, false
	}
	from := last.Lines().At(0).Stop
	line, _, _ := strings.Cut(string(source[from:]), "\n")
	before, _, found := strings.Cut(line, "|")
	return edit{span{from + len(before) + len("|"), from + len(line)}, ""}, found
}

// mention is a mention in prose.
type mention struct {
	login string
	span  // with the punctuation and the blanks after it
}

// who matches a web address, which GitHub links, or a mention of anyone. A mention follows no part of a word,
// of a path or of a mail address, but may follow marks of emphasis, a dot or a dash.
var (
	who = regexp.MustCompile(`(?i)(?:https?://|www\.)[^\s<]*` +
		`|(?:^|[^0-9a-z_/@])(_*)@([0-9a-z](?:-?[0-9a-z_])*(?:\[bot\])?)`)
	another = regexp.MustCompile(`^(?:[/@]|\.+[0-9A-Za-z_])`) // makes a team, an address or a file of it
	pause   = regexp.MustCompile(`^[,:]?[ \t]*`)
)

// findMentions returns the mentions in words of a page.
func findMentions(words string) (list []mention) {
	for _, m := range who.FindAllStringSubmatchIndex(words, -1) {
		if m[4] < 0 || another.MatchString(words[m[5]:]) {
			continue
		}
		login, to := words[m[4]:m[5]], m[5]
		if m[2] < m[3] { // emphasis
			login = strings.TrimRight(login, "_")
			to = m[4] + len(login)
		}
		to += len(pause.FindString(words[to:]))
		list = append(list, mention{strings.TrimSuffix(login, "[bot]"), span{m[4] - len("@"), to}})
	}
	return list
}
