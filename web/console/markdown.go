package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Bounds of the text that is formatted, besides [markdown.Tame]: goldmark's emphasis takes quadratic time, and each row
// of a table has as many cells as its widest row. Longer texts are shown as they are.
const (
	maxMarkdown  = 32 << 10 // bytes
	maxColumns   = 64       // bars in a line
	maxFormatted = 512 << 10
)

// agentMarkdown formats CommonMark with tables and strikethrough. HTML is shown as text; links lead to the web or to an
// e-mail address; images become links, so that nothing is loaded; headings are two levels lower than in the text. There
// are no link definitions, which would let a short name repeat a long address many times.
var agentMarkdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
	)),
	goldmark.WithExtensions(
		// The content security policy allows no style attributes.
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough,
		extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:", "mailto:"})),
	),
	// Agents break lines where they want a line break, as for a terminal or Slack.
	goldmark.WithRendererOptions(html.WithHardWraps(),
		renderer.WithNodeRenderers(util.Prioritized(safeRenderer{}, 100))),
)

func without(list []util.PrioritizedValue, parser any) []util.PrioritizedValue {
	return slices.DeleteFunc(list, func(v util.PrioritizedValue) bool { return v.Value == parser })
}

// formatMarkdown renders an agent's Markdown.
func formatMarkdown(text string) template.HTML {
	text = display.Text(text)
	b := limitedBuilder{left: maxFormatted}
	if !formattable(text) || agentMarkdown.Convert([]byte(text), &b) != nil {
		return template.HTML(`<p class="plain">` + template.HTMLEscapeString(text) + "</p>") //nolint:gosec // it is escaped
	}
	// Spelled again: hidden characters may have come as HTML entities.
	return template.HTML(display.Spelled(b.String())) //nolint:gosec // HTML in the text was parsed as text
}

func formattable(text string) bool {
	if len(text) > maxMarkdown || !markdown.Tame(text) {
		return false
	}
	for line := range strings.Lines(text) {
		if strings.Count(line, "|") > maxColumns {
			return false
		}
	}
	return true
}

// limitedBuilder is a strings.Builder that fails after a number of bytes.
type limitedBuilder struct {
	strings.Builder
	left int
}

func (b *limitedBuilder) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("too long")
	}
	return b.Builder.Write(p)
}

// safeRenderer replaces goldmark's rendering of headings and links.
type safeRenderer struct{}

func (safeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, renderHeading)
	r.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		writeLink(w, string(util.URLEscape(n.(*ast.Link).Destination, true)), entering)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		writeLink(w, string(util.URLEscape(n.(*ast.Image).Destination, true)), entering)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindAutoLink, renderAutoLink)
}

func renderHeading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "h" + strconv.Itoa(min(n.(*ast.Heading).Level+2, 6))
	if !entering {
		tag = "/" + tag
	}
	_, _ = io.WriteString(w, "<"+tag+">") // writes to memory do not fail, here and below
	return ast.WalkContinue, nil
}

// writeLink writes the beginning or the end of a link. A link that does not lead to the web is written as its text and
// its destination, which is often a file name.
func writeLink(w util.BufWriter, to string, entering bool) {
	switch ok := external(to); {
	case ok && entering:
		_, _ = io.WriteString(w, `<a href="`+template.HTMLEscapeString(to)+`" rel="noopener nofollow">`)
	case ok:
		_, _ = io.WriteString(w, "</a>")
	case !entering && to != "":
		_, _ = io.WriteString(w, ` <span class="to">(`+template.HTMLEscapeString(to)+`)</span>`)
	}
}

func renderAutoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	a := n.(*ast.AutoLink)
	to, label := string(util.URLEscape(a.URL(source), false)), string(a.Label(source))
	if a.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(to), "mailto:") {
		to = "mailto:" + to
	}
	if !external(to) {
		_, _ = io.WriteString(w, template.HTMLEscapeString(label))
		return ast.WalkContinue, nil
	}
	writeLink(w, to, true)
	_, _ = io.WriteString(w, template.HTMLEscapeString(label))
	writeLink(w, to, false)
	return ast.WalkContinue, nil
}

// external reports whether a link leads to the web or to an e-mail address.
func external(to string) bool {
	u, err := url.Parse(to)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" ||
		err == nil && u.Scheme == "mailto"
}

// formatText formats a text that a page has received in pieces, when it is complete.
func (c *Console) formatText(w http.ResponseWriter, r *http.Request) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMarkdown))
	if err != nil {
		return respond.Error(http.StatusRequestEntityTooLarge, "Too long",
			"Texts up to 32 KiB are formatted.")
	}
	respond.HTML(w, http.StatusOK, bytes.NewBufferString(string(formatMarkdown(string(text)))))
	return nil
}

// answerMarkdown returns the answer of a run as Markdown: its text, or its structured output as code.
func answerMarkdown(e *tasks.Ending) string {
	var form bytes.Buffer
	if len(e.Result.Structured) == 0 || json.Indent(&form, e.Result.Structured, "", "  ") != nil {
		return e.Result.Text
	}
	return "```json\n" + form.String() + "\n```" // JSON has no line that begins with a fence
}

// formatInput formats the input of a tool: a line per argument. Input that is not a JSON object is returned as it is.
func formatInput(input json.RawMessage) string {
	if len(input) == 0 {
		return ""
	}
	in := json.NewDecoder(bytes.NewReader(input))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return display.Text(string(input))
	}
	var lines []string
	for in.More() {
		name, err := in.Token()
		var value json.RawMessage
		if err == nil {
			err = in.Decode(&value)
		}
		if err != nil {
			return display.Text(string(input))
		}
		text := string(value)
		if json.Unmarshal(value, &text) == nil && strings.ContainsRune(text, '\n') {
			text = "\n" + text
		}
		lines = append(lines, fmt.Sprint(name)+": "+text)
	}
	return display.Text(strings.Join(lines, "\n"))
}
