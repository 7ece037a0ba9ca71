package main

import (
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/yuin/goldmark/ast"
)

//go:embed search.js
var search []byte

// section is what a page has between two headings, as the search of the site shows it.
type section struct {
	Page    string `json:"page"` // its title
	URL     string `json:"url"`  // from the root of the site
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// index adds a node of a document to the sections of its page.
func (p *page) index(n ast.Node, data []byte) {
	if h, ok := n.(*ast.Heading); ok {
		id, _ := h.AttributeString("id")
		s := section{URL: p.URL, Heading: words(h, data)}
		if h.Level > 1 {
			s.URL += "#" + string(id.([]byte))
		}
		p.sections = append(p.sections, s)
		return
	}
	if len(p.sections) == 0 || n.Type() != ast.TypeBlock {
		return
	}
	last := &p.sections[len(p.sections)-1]
	switch n.Kind() {
	case ast.KindFencedCodeBlock, ast.KindCodeBlock:
		last.Text += " " + string(n.Lines().Value(data))
	default:
		if c := n.FirstChild(); c != nil && c.Type() == ast.TypeInline {
			last.Text += " " + words(n, data)
		}
	}
}

// words returns what a reader sees of a node.
func words(n ast.Node, data []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch t := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(t.Segment.Value(data))
				if t.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.AutoLink:
			if entering {
				b.Write(t.Label(data))
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// searchIndex returns a script that sets the sections of all pages: a page that was opened as a file may load a script,
// but no data.
func (s *site) searchIndex() ([]byte, error) {
	var all []section
	for _, p := range s.pages {
		for _, one := range p.sections {
			one.Page, one.Text = p.Title, strings.Join(strings.Fields(one.Text), " ")
			all = append(all, one)
		}
	}
	text, err := json.Marshal(all)
	return append([]byte("errandSections = "), append(text, ";\n"...)...), err
}
