package instructions

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A local directory tells what a commit would, and nothing from outside of it.
func TestReadDir(t *testing.T) {
	t.Parallel()
	dir := plugin(t, "work", map[string]string{
		"CLAUDE.md": "top @docs/more.md", "docs/more.md": "more", "api/AGENTS.md": "api", ".claude/rules/go.md": "rule",
		".claude/skills/ship/SKILL.md": "Ship.", ".git/CLAUDE.md": "no", "web/node_modules/x/CLAUDE.md": "no",
		"large/CLAUDE.md": strings.Repeat("x", 2<<20),
	})
	outside := plugin(t, "other", map[string]string{"CLAUDE.md": "outside"})
	for to, from := range map[string]string{
		filepath.Join(outside, "CLAUDE.md"): "web/CLAUDE.md", "../docs/more.md": "lib/CLAUDE.md",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(from)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe/CLAUDE.md"), 0o600); err != nil { // reading it would block
		t.Fatal(err)
	}
	set, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := append(texts(set), set.Names()[len(set.Texts):]...)
	slices.Sort(got)
	want := []string{
		".claude/rules/go.md", "CLAUDE.md", "api/AGENTS.md | api/**", "docs/more.md", "lib/CLAUDE.md | lib/**",
		"skill ship",
	}
	if !slices.Equal(got, want) || set.Texts[1].Text != "more" {
		t.Errorf("%q, want %q", got, want)
	}
	said := strings.Join(set.Notes, "\n")
	for _, left := range []string{"web/CLAUDE.md is left out", "pipe/CLAUDE.md is left out", "large/CLAUDE.md is left out"} {
		if !strings.Contains(said, left) || len(set.Notes) != 3 {
			t.Errorf("notes %q", set.Notes)
		}
	}
}

// Of a large directory the top is read first, and people hear that the rest is not.
func TestReadLargeDir(t *testing.T) {
	t.Parallel()
	dir := plugin(t, "work", map[string]string{"CLAUDE.md": "top", "a/b/CLAUDE.md": "deep"})
	for n := range maxNames {
		if err := os.WriteFile(filepath.Join(dir, "a", fmt.Sprint(n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := ReadDir(dir)
	if err != nil || !slices.Equal(texts(set), []string{"CLAUDE.md"}) || len(set.Notes) != 1 ||
		!strings.Contains(set.Notes[0], "20000 files") {
		t.Errorf("%+v, %v", set, err)
	}
}
