// Command site renders README.md and the documents as a site of static HTML with a search, which also works from files.
// A link that leads nowhere is an error, and so is a document without a place in the navigation.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// group is a part of the navigation, in reading order.
type group struct {
	Title string
	files string // patterns, separated by spaces
	Pages []*page
}

// Has reports whether a page is in the group.
func (g *group) Has(p *page) bool { return slices.Contains(g.Pages, p) }

// navigation has every document: TestSite checks it.
func navigation() []*group {
	return []*group{
		{Title: "Start", files: "README.md docs/README.md docs/questions.md docs/alternatives.md"},
		{
			Title: "Set up",
			files: "docs/deploy.md docs/configure.md docs/models.md docs/connect.md docs/security.md",
		},
		{
			Title: "Use",
			files: "docs/slack.md docs/github.md docs/repository.md docs/environment.md docs/reviews.md docs/chat.md " +
				"docs/cli.md docs/automation.md docs/mcp.md",
		},
		{
			Title: "Operate",
			files: "docs/operations.md docs/redis.md docs/scaling.md docs/logs.md CHANGELOG.md SECURITY.md",
		},
		{
			Title: "Reference",
			files: "docs/settings.md docs/errors.md docs/access.md docs/threats.md docs/faults.md docs/metrics.md " +
				"docs/keys.md docs/contracts.md docs/states.md docs/invariants.md",
		},
		{
			Title: "Understand",
			files: "docs/architecture.md docs/runs.md docs/concurrency.md docs/testing.md docs/chaos.md bench/README.md",
		},
		{Title: "Contribute", files: "CONTRIBUTING.md AGENTS.md docs/roadmap.md"},
		{Title: "Decisions", files: "docs/decisions/README.md docs/decisions/0*.md"},
	}
}

// site is what is written.
type site struct {
	Groups []*group
	repo   string
	pages  []*page
	byFile map[string]*page
}

// glob returns the files of the repository that match a pattern, which matches some.
func (s *site) glob(pattern string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.repo, pattern))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find %s: %w", pattern, errors.Join(err, os.ErrNotExist))
	}
	for i, f := range files {
		files[i] = strings.TrimPrefix(filepath.ToSlash(f), filepath.ToSlash(filepath.Clean(s.repo))+"/")
	}
	return files, nil
}

// load renders the pages of a navigation and checks their links.
func load(repo string, navigation []*group) (*site, error) {
	s := &site{Groups: navigation, repo: repo, byFile: map[string]*page{}}
	for _, g := range s.Groups {
		for pattern := range strings.FieldsSeq(g.files) {
			files, err := s.glob(pattern)
			if err != nil {
				return nil, err
			}
			for _, file := range files {
				p := newPage(file)
				g.Pages, s.pages, s.byFile[file] = append(g.Pages, p), append(s.pages, p), p
			}
		}
	}
	var wrong []error
	for _, p := range s.pages {
		wrong = append(wrong, s.render(p))
	}
	for _, p := range s.pages {
		for _, link := range p.links {
			file, anchor, _ := strings.Cut(link, "#")
			if anchor != "" && !s.byFile[file].anchors[anchor] {
				wrong = append(wrong, fmt.Errorf("%s: link to %s: no such heading", p.file, link))
			}
		}
	}
	return s, errors.Join(wrong...)
}

var (
	//go:embed page.html
	layout string
	//go:embed style.css
	style []byte
)

// view is what the layout shows: a page, or the index of all pages and their headings.
type view struct {
	*site
	Page           *page
	Index          bool
	Previous, Next *page
}

// write writes the site to a directory.
func (s *site) write(out string) error {
	t, err := template.New("page").Parse(layout)
	if err != nil {
		return err
	}
	index, err := s.searchIndex()
	if err != nil {
		return err
	}
	files := map[string][]byte{"style.css": style, "search.js": search, "search-index.js": index}
	for i, p := range append(slices.Clone(s.pages), &page{URL: "contents.html", Title: "Index"}) {
		v := view{site: s, Page: p, Index: i == len(s.pages)}
		if i > 0 && !v.Index {
			v.Previous = s.pages[i-1]
		}
		if i+1 < len(s.pages) {
			v.Next = s.pages[i+1]
		}
		var b bytes.Buffer
		if err := t.Execute(&b, v); err != nil {
			return fmt.Errorf("write %s: %w", p.URL, err)
		}
		files[p.URL] = b.Bytes()
		maps.Copy(files, p.images)
	}
	for name, data := range files {
		name = filepath.Join(out, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o644)); err != nil { //nolint:gosec // for everyone
			return err
		}
	}
	return nil
}

// Rel returns another URL of the site, relative to the page.
func (p *page) Rel(url string) (string, error) { return filepath.Rel(path.Dir(p.URL), url) }

// Root returns the way from the page to the root of the site.
func (p *page) Root() string { return strings.Repeat("../", strings.Count(p.URL, "/")) }

func main() {
	repo := flag.String("repo", "..", "the checkout")
	out := flag.String("out", "../dist/site", "the directory to write")
	flag.Parse()
	s, err := load(*repo, navigation())
	if err == nil {
		err = s.write(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}
