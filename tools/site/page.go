package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// source is where links to files that are no pages lead.
const source = "https://github.com/errand-fleet/errand/blob/main/"

// page is a document.
type page struct {
	URL      string // in the site, where the document is in the repository
	Title    string
	Headings []heading // of the second level
	Body     template.HTML

	file     string            // in the repository
	links    []string          // to other pages, with their anchors
	images   map[string][]byte // by their URLs
	anchors  anchors
	sections []section
}

type heading struct{ ID, Text string }

func newPage(file string) *page {
	url := strings.TrimSuffix(file, ".md") + ".html"
	if file == "README.md" {
		url = "index.html"
	}
	return &page{URL: url, file: file, images: map[string][]byte{}, anchors: anchors{}}
}

// render reads a document and makes the HTML of its page. The documents are our own, so their HTML is passed on.
func (s *site) render(p *page) (wrong error) {
	data, err := os.ReadFile(filepath.Join(s.repo, p.file))
	if err != nil {
		return err
	}
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe()))
	doc := md.Parser().Parse(text.NewReader(data), parser.WithContext(parser.NewContext(parser.WithIDs(p.anchors))))
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		p.index(n, data)
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			switch h := (heading{string(id.([]byte)), strings.ReplaceAll(string(n.Lines().Value(data)), "`",
				"")}); n.Level {
			case 1:
				p.Title = h.Text
			case 2:
				p.Headings = append(p.Headings, h)
			}
		case *ast.Link:
			to, err := s.link(p, string(n.Destination))
			n.Destination, wrong = []byte(to), errors.Join(wrong, err)
		case *ast.Image:
			wrong = errors.Join(wrong, s.image(p, string(n.Destination)))
		case *ast.HTMLBlock:
			for _, m := range regexp.MustCompile(`src="([^"]*)"`).FindAllSubmatch(n.Lines().Value(data), -1) {
				wrong = errors.Join(wrong, s.image(p, string(m[1])))
			}
		}
		return ast.WalkContinue, nil
	})
	var b bytes.Buffer
	wrong = errors.Join(wrong, err, md.Renderer().Render(&b, data, doc))
	body := strings.NewReplacer("<table>", `<div class="wide"><table>`, "</table>",
		"</table></div>").Replace(b.String())
	body = regexp.MustCompile(`<code>(-[^<]{1,16}|[^< ]{1,24})</code>`).ReplaceAllString(body,
		`<code class="whole">$1</code>`)
	body = regexp.MustCompile(`(<h[23] id="([^"]*)">.*?)(</h[23]>)`).ReplaceAllString(body,
		`$1 <a class="anchor" href="#$2" aria-label="Link to this section">#</a>$3`)
	p.Body = template.HTML(body) //nolint:gosec // of our own documents
	return wrong
}

// image adds an image of a document to its page.
func (s *site) image(p *page, name string) (err error) {
	name = path.Join(path.Dir(p.file), name)
	p.images[name], err = os.ReadFile(filepath.Join(s.repo, name))
	return err
}

// link returns where a link of a document leads in the site: to a page, to a file of the repository, or elsewhere.
func (s *site) link(p *page, to string) (string, error) {
	target, anchor, _ := strings.Cut(to, "#")
	if strings.Contains(target, ":") {
		return to, nil
	}
	file := p.file
	if target != "" {
		file = path.Join(path.Dir(p.file), target)
	}
	other := s.byFile[file]
	if other == nil {
		if _, err := os.Stat(filepath.Join(s.repo, file)); err != nil {
			return "", fmt.Errorf("%s: link to %s: %w", p.file, to, err)
		}
		return source + file, nil
	}
	p.links = append(p.links, file+"#"+anchor)
	rel, err := p.Rel(other.URL)
	if anchor != "" {
		rel += "#" + anchor
	}
	return rel, err
}

// anchors names headings as GitHub does, so that links work in both places. It implements [parser.IDs].
type anchors map[string]bool

func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	slug := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(string(value)), "")
	slug = strings.ReplaceAll(slug, " ", "-")
	id := slug
	for n := 1; a[id]; n++ {
		id = fmt.Sprintf("%s-%d", slug, n)
	}
	a[id] = true
	return []byte(id)
}

func (a anchors) Put(value []byte) { a[string(value)] = true }
