package web

import (
	"bytes"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"github.com/errand-fleet/errand/internal/legible"
)

// What is formatted has bounds, because a hostile text costs more than its length: goldmark takes quadratic time for what is nested and for
// brackets, and a table has as many cells as its widest row in each of its rows. A text beyond them is shown as it is.
const (
	maxMarkdown  = 32 << 10 // bytes
	maxBrackets  = 1000     // in a text
	maxNested    = 64       // bars or signs of quotation in a line, and marks of lists, which stand apart
	maxFormatted = 512 << 10
)

// markdown formats what agents write: CommonMark with tables and strikethrough. HTML in it is text like any other; links go to the web or to
// an address and nowhere else; pictures are links, so that nothing is loaded from anywhere; headings stand below those of the page. There are
// no references, which would repeat a long address as often as a short name for it.
var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
	)),
	goldmark.WithExtensions(
		// Our policy allows no style attributes.
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough,
		extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:", "mailto:"})),
	),
	// Agents write lines as they shall be read, in a terminal as in Slack.
	goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(careful{}, 100))),
)

// without leaves one parser out.
func without(list []util.PrioritizedValue, parser any) []util.PrioritizedValue {
	return slices.DeleteFunc(slices.Clone(list), func(v util.PrioritizedValue) bool { return v.Value == parser })
}

// formatted is an agent's text as a page shows it.
func formatted(text string) template.HTML {
	text = legible.Text(text)
	b := bounded{left: maxFormatted}
	if !tame(text) || markdown.Convert([]byte(text), &b) != nil {
		return template.HTML(`<p class="plain">` + template.HTMLEscapeString(text) + "</p>") //nolint:gosec // it is escaped
	}
	// Once more: what cannot be seen may have come as an entity.
	return template.HTML(legible.Spelled(b.String())) //nolint:gosec // HTML in the text was not taken for any
}

// tame reports whether a text is within the bounds of what is formatted.
func tame(text string) bool {
	if len(text) > maxMarkdown || strings.Count(text, "[") > maxBrackets {
		return false
	}
	for line := range strings.Lines(text) {
		if strings.Count(line, "|") > maxNested || strings.Count(line, ">") > maxNested || len(strings.Fields(line)) > maxNested && nested(line) {
			return false
		}
	}
	return true
}

// nested reports whether a line opens very many lists, one in another.
func nested(line string) bool {
	return !slices.ContainsFunc(strings.Fields(line)[:maxNested], func(word string) bool { return strings.ContainsFunc(word, unicode.IsLetter) })
}

// bounded takes so many bytes and then no more.
type bounded struct {
	strings.Builder
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("too long")
	}
	return b.Builder.Write(p)
}

// careful renders what goldmark's own renderer is too free with.
type careful struct{}

func (careful) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, heading)
	r.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		link(w, string(util.URLEscape(n.(*ast.Link).Destination, true)), entering)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		link(w, string(util.URLEscape(n.(*ast.Image).Destination, true)), entering)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindAutoLink, autoLink)
}

func heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "h" + strconv.Itoa(min(n.(*ast.Heading).Level+2, 6))
	if !entering {
		tag = "/" + tag
	}
	_, _ = io.WriteString(w, "<"+tag+">") // memory takes everything, here and below
	return ast.WalkContinue, nil
}

// link writes one end of a link. Where it would not go to the web it is its text, and, for such is often the name of a file, where it would
// have gone.
func link(w util.BufWriter, to string, entering bool) {
	switch good := outward(to); {
	case good && entering:
		_, _ = io.WriteString(w, `<a href="`+template.HTMLEscapeString(to)+`" rel="noopener nofollow">`)
	case good:
		_, _ = io.WriteString(w, "</a>")
	case !entering && to != "":
		_, _ = io.WriteString(w, ` <span class="to">(`+template.HTMLEscapeString(to)+`)</span>`)
	}
}

func autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	a := n.(*ast.AutoLink)
	to, label := string(util.URLEscape(a.URL(source), false)), string(a.Label(source))
	if a.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(to), "mailto:") {
		to = "mailto:" + to
	}
	if !outward(to) {
		_, _ = io.WriteString(w, template.HTMLEscapeString(label))
		return ast.WalkContinue, nil
	}
	link(w, to, true)
	_, _ = io.WriteString(w, template.HTMLEscapeString(label))
	link(w, to, false)
	return ast.WalkContinue, nil
}

// outward reports whether a link leads to the web, or to somebody's mail.
func outward(to string) bool {
	u, err := url.Parse(to)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" || err == nil && u.Scheme == "mailto"
}

// format formats a text that a page has got by pieces, when it is whole.
func (h *Handler) format(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMarkdown))
	if err != nil {
		h.fail(w, r, problem{http.StatusRequestEntityTooLarge, "Too long", "Texts up to 32 KiB are formatted."})
		return
	}
	send(w, http.StatusOK, bytes.NewBufferString(string(formatted(string(text)))))
}
