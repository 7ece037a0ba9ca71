package main

import (
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	identity  = regexp.MustCompile(` id="([^"]*)"`)
)

// In the rendered site no link or anchor is broken, every document is a page, every page is in the navigation of every
// page, and nothing needs a script or a server.
func TestSite(t *testing.T) {
	t.Parallel()
	s, err := load("../..", navigation())
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := s.write(out); err != nil {
		t.Fatal(err)
	}
	files, ids := map[string]string{}, map[string]bool{}
	err = filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		name, _ = filepath.Rel(out, name)
		files[name] = string(data)
		for _, m := range identity.FindAllStringSubmatch(string(data), -1) {
			if ids[name+"#"+m[1]] {
				t.Errorf("%s has %s twice", name, m[1])
			}
			ids[name+"#"+m[1]] = true
		}
		return err
	})
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for name, text := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		if strings.Contains(text, "<script") || strings.Contains(text, ".md#") {
			t.Errorf("%s has a script, or a link to a document", name)
		}
		linked := map[string]bool{}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue // elsewhere
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			linked[file] = true
			if files[file] == "" || anchor != "" && !ids[file+"#"+anchor] {
				t.Errorf("%s: the link %s is broken", name, m[1])
			}
		}
		for _, p := range s.pages {
			if !linked[p.URL] {
				t.Errorf("%s does not link %s", name, p.URL)
			}
		}
	}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		documents, err := s.glob(pattern)
		if err != nil {
			t.Error(err)
		}
		for _, file := range documents {
			if p := s.byFile[file]; p == nil || p.Title == "" ||
				!strings.Contains(files["contents.html"], template.HTMLEscapeString(p.Title)) {
				t.Errorf("%s has no place in the navigation", file)
			}
		}
	}
}

// What is broken in a document is named, all at once.
func TestBrokenLinks(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	text := "# A\n[here](#a) [file](other) [page](b.md#x) [again](b.md#b-1) ![picture](none.png)\n"
	for name, text := range map[string]string{"a.md": text, "b.md": "# B\n## B\n"} {
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := load(repo, []*group{{files: "a.md b.md"}})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Fatalf("got %v, want three errors", err)
	}
	for _, want := range []string{"link to other: ", "none.png", "link to b.md#x: no such heading"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
