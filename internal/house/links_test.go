package house

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	mdLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	tested  = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	helper  = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")
	named   = regexp.MustCompile(`\bdocs/[a-z][a-z-]*(?:/[a-z0-9-]+)?\.md\b`)
)

// TestLinks checks that the relative links of every Markdown file lead to a file and, with a fragment, to a heading of
// it, and that the documents named in code and the tests named in documents exist.
func TestLinks(t *testing.T) {
	repo := os.DirFS("../..")
	anchors := map[string]map[string]bool{} // of each Markdown file
	texts := map[string]string{}            // of all others
	err := fs.WalkDir(repo, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"node_modules", "testdata", ".git", "bin", "dist", "out"}, base):
			return fs.SkipDir
		case d.IsDir() ||
			!slices.Contains([]string{".md", ".go", ".yaml", ".yml", ".example", ".html"}, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(repo, name)
		texts[name] = string(text)
		if path.Ext(name) == ".md" {
			anchors[name] = fragments(string(text))
		}
		return err
	})
	if err != nil || len(anchors) < 20 {
		t.Fatalf("read %d Markdown files: %v", len(anchors), err)
	}
	tests := map[string]bool{}
	for name, text := range texts {
		if strings.HasSuffix(name, "_test.go") {
			for _, f := range regexp.MustCompile(`(?m)^func (\w+)\(`).FindAllStringSubmatch(text, -1) {
				tests[f[1]] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if path.Ext(name) != ".md" && !strings.HasSuffix(name, "_test.go") {
			for _, doc := range named.FindAllString(texts[name], -1) {
				if anchors[doc] == nil {
					t.Errorf("%s names %s, which does not exist", name, doc)
				}
			}
		}
		if path.Ext(name) != ".md" {
			continue
		}
		for _, test := range tested.FindAllString(texts[name], -1) {
			if !tests[test] && test != "TestX" && test != "TestName" {
				t.Errorf("%s names %s, which does not exist", name, test)
			}
		}
		for _, link := range mdLink.FindAllStringSubmatch(fenced.ReplaceAllString(texts[name], ""), -1) {
			target, fragment, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := fs.Stat(repo, file); err != nil {
				t.Errorf("%s: link to %s: no such file", name, link[1])
			} else if fragment != "" && !anchors[file][fragment] {
				t.Errorf("%s: link to %s: no such heading", name, link[1])
			}
		}
	}
}

// TestHelpers checks that docs/architecture.md lists all helpers below internal, and nothing else.
func TestHelpers(t *testing.T) {
	h, err := measure(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for dir := range h.packages {
		if name, ok := strings.CutPrefix(dir, "internal/"); ok {
			want = append(want, name)
		}
	}
	_, rest, _ := strings.Cut(string(doc), "\n| package | does |\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	for _, row := range helper.FindAllStringSubmatch(table, -1) {
		got = append(got, row[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/architecture.md lists %q, internal has %q", got, want)
	}
}

// fragments returns the anchors that GitHub gives the headings of a text.
func fragments(text string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		slug := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		all[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return all
}

// TestTwoCommands checks that README.md begins with the two commands of a checkout, and that CI runs both.
func TestTwoCommands(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	_, after, _ := strings.Cut(string(readme), "```sh\n")
	block, _, _ := strings.Cut(after, "```")
	for line := range strings.Lines(block) {
		if command, _, _ := strings.Cut(strings.TrimSpace(line), "  "); strings.HasPrefix(command, "make ") {
			commands = append(commands, command)
		}
	}
	if want := []string{"make demo", "make test"}; !slices.Equal(commands, want) {
		t.Errorf("README.md begins with %q, want %q", commands, want)
	}
	ci, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		if !strings.Contains(string(ci), "\nstep "+command) {
			t.Errorf(".ci/run does not run %s", command)
		}
	}
}
