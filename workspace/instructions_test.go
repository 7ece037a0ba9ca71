package workspace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Instructions are those of the base branch, whatever the head and the work tree have, and never of a file outside the
// commit.
func TestInstructionsAreThoseOfBase(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		"CLAUDE.md": "-> docs/agents.md", "docs/agents.md": "base\n@style guide.md\n@../docs/my\\ style.md @../later.md @out/hosts, @docs/my\\ style.md/x\n",
		"out/hosts":        "-> /etc/hosts",
		"docs/my style.md": "style\n", "my style.md": "wrong\n", ".claude/skills": "-> ../skills",
		"skills/s/SKILL.md": "skill\n", "skills/s/data.bin": "a\x00b", "out/CLAUDE.md": "-> /etc/hostname", "CLAUDE.local.md": "local\n",
		"up/CLAUDE.md": "-> ../../../../etc/passwd", "gone/AGENTS.md": "-> nothing", "loop/AGENTS.md": "-> AGENTS.md",
		"sub dir/AGENTS.md": "nested\n", "sub dir/x/.claude/skills/t/SKILL.md": "-> /etc/passwd", "large/AGENTS.md": strings.Repeat("x", 2<<20), "AGENTS.md/CLAUDE.md": "of a directory\n",
	})
	o.commit("evil", map[string]string{
		"docs/agents.md": "evil\n", "later.md": "evil\n", "skills/s/SKILL.md": "evil\n", "evil/CLAUDE.md": "evil\n",
	})
	w := o.files()
	c := checkout(t, w, Want{Thread: "t", Repo: "acme/api", Ref: "evil"})
	write(t, c.Dir+"/CLAUDE.md", "worse\n")
	set, err := w.Instructions(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, text := range set.Texts {
		got[text.Name+" for "+strings.Join(text.Paths, ", ")] = text.Text
	}
	for _, f := range set.Skills {
		got[f.Name] = f.Content
	}
	want := map[string]string{
		"CLAUDE.md for ":       "base\n@style guide.md\n@../docs/my\\ style.md @../later.md @out/hosts, @docs/my\\ style.md/x\n",
		"CLAUDE.local.md for ": "local\n", "AGENTS.md/CLAUDE.md for AGENTS.md/**": "of a directory\n", "sub dir/AGENTS.md for sub dir/**": "nested\n",
		"skills/s/SKILL.md": "---\nname: s\n---\nskill\n", "skills/s/data.bin": "a\x00b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instructions (-want +got):\n%s", diff)
	}
	if len(set.Notes) != 7 || !strings.HasPrefix(set.Notes[0], "out/hosts is left out") {
		t.Errorf("notes: %q", set.Notes)
	}
}

// A commit with many links, or links to much, costs little.
func TestLinksOfInstructionsAreBounded(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	files := map[string]string{"skills/s/SKILL.md": "s\n"}
	for i := range maxLinks + 2 {
		files[fmt.Sprintf(".claude/skills/%03d", i)] = "-> ../../skills/s"
	}
	o.commit("main", files)
	w := o.files()
	set, err := w.Instructions(t.Context(), checkout(t, w, Want{Thread: "t", Repo: "acme/api"}))
	if err != nil || len(set.Skills) != maxLinks || !strings.Contains(strings.Join(set.Notes, ""), "2 links") {
		t.Errorf("%d skills, notes %q, %v", len(set.Skills), set.Notes, err)
	}
	if _, err := w.Checkout(t.Context(), Want{Thread: "u", Repo: "acme/api", TrustedConfig: true}); err == nil {
		t.Error("a part of the trusted configuration is taken for all of it")
	}
}

// A repository may have more instructions than one call of git may print.
func TestMuchOfInstructions(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	large := strings.Repeat("x", 1<<20)
	files := map[string]string{
		"CLAUDE.md": "base\n", ".claude/skills/s/SKILL.md": "s\n", ".claude/skills/s/a.ttf": large,
	}
	for i := range stdoutMax>>20 + 1 {
		files[fmt.Sprintf("%d/CLAUDE.md", i)] = large
	}
	o.commit("main", files)
	w := o.files()
	set, err := w.Instructions(t.Context(), checkout(t, w, Want{Thread: "t", Repo: "acme/api"}))
	if err != nil || len(set.Texts) == 0 || set.Texts[0].Text != "base\n" || len(set.Skills) != 1 {
		t.Errorf("%d texts, %d skills, %v", len(set.Texts), len(set.Skills), err)
	}
}

// Only the names of instructions are listed. A repository where these are too many still has runs, which say that they
// lack its instructions.
func TestInstructionsOfTooManyFiles(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	files := map[string]string{"CLAUDE.md": "@imported.md @nothing.md\n", "imported.md": "imported\n"}
	for n := range 100 {
		files[fmt.Sprint(n)] = "x\n"
	}
	o.commit("main", files)
	w := o.files()
	c := checkout(t, w, Want{Thread: "t", Repo: "acme/api"})
	w.git.limit = 1000 // the names of all files have more bytes, but those of instructions have not
	if set, err := w.Instructions(t.Context(), c); err != nil || len(set.Texts) != 2 || len(set.Notes) > 0 {
		t.Errorf("%+v, %v", set, err)
	}
	w.git.limit = 50
	set, err := w.Instructions(t.Context(), c)
	if err != nil || len(set.Texts) > 0 || !strings.Contains(strings.Join(set.Notes, ""), "too many files") {
		t.Errorf("%+v, %v", set, err)
	}
}
