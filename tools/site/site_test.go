package main

import (
	"html/template"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	identity  = regexp.MustCompile(` id="([^"]*)"`)
)

// rendered returns the site of this checkout, and the directory that it was written to.
func rendered(t *testing.T) (s *site, dir string) {
	t.Helper()
	s, err := load("../..", navigation())
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := s.write(dir); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// In the rendered site no link or anchor is broken, every document is a page, every page is in the navigation of every
// page, and nothing but the search needs a script.
func TestSite(t *testing.T) {
	t.Parallel()
	s, out := rendered(t)
	files, ids := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
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
		if strings.Count(text, "<script") != 1 || strings.Contains(text, ".md#") {
			t.Errorf("%s has another script than the search, or a link to a document", name)
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

// The search finds answers, among the first three sections that it lists, by what people ask.
func TestSearch(t *testing.T) {
	t.Parallel()
	_, out := rendered(t)
	const script = `const fs = require("fs"), vm = require("vm"), [dir, ...queries] = process.argv.slice(1);
for (const file of ["search.js", "search-index.js"]) vm.runInThisContext(fs.readFileSync(dir + "/" + file, "utf8"));
for (const query of queries) console.log(vm.runInThisContext("find")(errandSections, query).slice(0, 3)
	.map((f) => f.section.url).join(" "));`
	answers := [][2]string{
		{"rotate a key", "docs/questions.html#how-do-i-rotate-a-key-or-token"},
		{"stuck task", "docs/operations.html#a-task-that-is-stuck"},
		{"costs too high", "docs/questions.html#the-costs-are-too-high-whose-are-they-and-how-do-i-limit-them"},
		{"change the model", "docs/questions.html#how-do-i-change-the-model"},
		{"GitHub Enterprise", "docs/questions.html#does-it-work-with-github-enterprise-server"},
		{"gitlab", "docs/questions.html#does-it-work-with-gitlab-bitbucket-or-gitea"},
		{"back up redis", "docs/deploy.html#back-up"},
		{"uninstall", "docs/questions.html#how-do-i-uninstall-it"},
		{"how do I upgrade?", "docs/questions.html#how-do-i-upgrade"},
		{"telemetry", "docs/questions.html#does-errand-send-telemetry"},
		{"ERRAND_KEEP_LOGS_GB", "docs/settings.html#keep-when-a-worker-removes-unused-files-from-its-disk-oldest-first-0-of-any-size"},
		{"commands github", "docs/github.html#commands"},
		{"private npm registry", "docs/environment.html#private-registries"},
		{"pull request from a fork", "docs/github.html#pull-requests-from-forks"},
		{"kubernetes helm", "docs/deploy.html#kubernetes"},
	}
	args := []string{"-e", script, out}
	for _, answer := range answers {
		args = append(args, answer[0])
	}
	found, err := exec.CommandContext(t.Context(), "node", args...).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(found)), "\n")
	if err != nil || len(lines) != len(answers) {
		t.Fatalf("%v: %s", err, found)
	}
	for i, answer := range answers {
		if !slices.Contains(strings.Fields(lines[i]), answer[1]) {
			t.Errorf("%q finds %s, not %s", answer[0], lines[i], answer[1])
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
