package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/nobody"
)

// configOf returns what the CLI would find, without using the code under test.
func configOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := workTree(t, dir)
	for name := range files {
		if low := strings.ToLower(name); !strings.Contains(low, "claude") && !strings.Contains(low, "mcp") &&
			!strings.Contains(low, "agents") {
			delete(files, name)
		}
	}
	return files
}

func TestTrustedConfigIsThatOfBase(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		"CLAUDE.md": "-> AGENTS.md", "AGENTS.md": "base\n", ".claude/settings.json": "base\n",
		".claude/hooks/a.sh": "base\n", ".claude/skills": "-> ../skills", "skills/s/SKILL.md": "base\n",
		"sub/CLAUDE.md": "base\n", "lost/CLAUDE.md": "base\n", "file/CLAUDE.md": "base\n",
		".claude/out": "-> /etc/hostname", ".claude/dangling": "-> nothing", "same/.mcp.json": "base\n",
	})
	o.commit("evil", map[string]string{
		"CLAUDE.md": "evil\n", "AGENTS.md": "evil\n", "skills/s/SKILL.md": "evil\n", ".mcp.json": "evil\n",
		".claude/settings.json": "evil\n", ".claude/settings.local.json": "evil\n", ".claude/hooks/a.sh": "",
		".claude/hooks/b.sh": "evil\n", "sub/CLAUDE.md": "", "sub/.claude/settings.json": "evil\n",
		"sub/claude.MD": "evil\n", "CLAUDE.local.md": "-> skills/s/SKILL.md", "lost": "",
		"file": "no directory any more\n", "code.go": "package x\n",
	})
	w := o.files()
	want := Want{Thread: "t", Repo: "acme/api", Ref: "evil", TrustedConfig: true}
	c := checkout(t, w, want)
	trusted := map[string]string{
		"CLAUDE.md": "base\n", ".claude/settings.json": "base\n", ".claude/hooks/a.sh": "base\n",
		".claude/skills/s/SKILL.md": "base\n", "sub/CLAUDE.md": "base\n", "lost/CLAUDE.md": "base\n",
		"same/.mcp.json": "base\n", "AGENTS.md": "base\n",
	}
	if diff := cmp.Diff(trusted, configOf(t, c.Dir)); diff != "" {
		t.Errorf("configuration (-base +got):\n%s", diff)
	}
	if fi, err := os.Stat(c.Dir + "/.claude/hooks/a.sh"); err != nil || fi.Mode()&0o100 == 0 {
		t.Errorf("a hook is not executable: %v, %v", fi, err)
	}
	if got := workTree(t, c.Dir)["code.go"]; got != "package x\n" {
		t.Errorf("code.go is %q", got)
	}

	// It is hidden from status and from a commit of everything.
	if got := testGit(t, c.Dir, "status", "--porcelain", "--untracked-files=all"); got != "" {
		t.Errorf("status:\n%s", got)
	}
	write(t, c.Dir+"/code.go", "package y\n")
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "commit", "--quiet", "--all", "--message", "work")
	if got := testGit(t, c.Dir, "show", "--name-only", "--format=", "HEAD"); got != "code.go" {
		t.Errorf("committed: %s", got)
	}

	// Configuration that a misled run wrote does not reach the next run.
	write(t, c.Dir+"/.claude/settings.local.json", "evil\n")
	write(t, c.Dir+"/.mcp.json", "evil\n")
	write(t, c.Dir+"/CLAUDE.md", "evil\n")
	write(t, c.Dir+"/.git/info/exclude", "of the agent\n")
	testGit(t, c.Dir, "branch", "CLAUDE.md") // a file of that name, but in .git
	o.commit("main", map[string]string{"CLAUDE.md": "newer\n", "same": ""})
	want.Keep = true
	c = checkout(t, w, want)
	trusted["CLAUDE.md"] = "newer\n"
	delete(trusted, "same/.mcp.json")
	if diff := cmp.Diff(trusted, configOf(t, c.Dir)); c.Fresh || diff != "" {
		t.Errorf("fresh %v, configuration of a kept clone (-base +got):\n%s", c.Fresh, diff)
	}
	testGit(t, c.Dir, "rev-parse", "--verify", "refs/heads/CLAUDE.md")
	exclude, err := os.ReadFile(c.Dir + "/.git/info/exclude")
	if err != nil || !strings.Contains(string(exclude), "of the agent\n") {
		t.Errorf("exclude: %q, %v", exclude, err)
	}
	checkout(t, w, want)
	if again, _ := os.ReadFile(c.Dir + "/.git/info/exclude"); string(again) != string(exclude) {
		t.Errorf("exclude grows: %q", again)
	}

	write(t, c.Dir+"/.git/info/exclude", "")
	write(t, c.Dir+"/.git/info/exclude/of", "the agent\n")
	if c = checkout(t, w, want); c.Fresh || testGit(t, c.Dir, "status", "--porcelain") != "" {
		t.Errorf("fresh %v with a directory in place of exclude", c.Fresh)
	}
}

func TestTrustedConfigIsPutOnlyOnDemand(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{"CLAUDE.md": "base\n"})
	o.commit("topic", map[string]string{"CLAUDE.md": "topic\n"})
	c := checkout(t, o.files(), Want{Thread: "t", Repo: "acme/api", Ref: "topic"})
	if got := configOf(t, c.Dir)["CLAUDE.md"]; got != "topic\n" {
		t.Errorf("CLAUDE.md is %q", got)
	}
}

// A conflict in configuration cannot be hidden, and must not make the clone unusable.
func TestTrustedConfigInConflict(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{"CLAUDE.md": "base\n"})
	o.commit("topic", map[string]string{"CLAUDE.md": "topic\n"})
	o.commit("main", map[string]string{"CLAUDE.md": "main\n"})
	w := o.files()
	want := Want{Thread: "t", Repo: "acme/api", Ref: "topic", Keep: true}
	c := checkout(t, w, want)
	if out, err := tryGit(t, c.Dir, "merge", "origin/main"); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	want.TrustedConfig = true
	c = checkout(t, w, want)
	if got := configOf(t, c.Dir)["CLAUDE.md"]; c.Fresh || got != "main\n" {
		t.Errorf("fresh %v, CLAUDE.md is %q", c.Fresh, got)
	}
	if got := testGit(t, c.Dir, "status", "--porcelain"); got != "UU CLAUDE.md" {
		t.Errorf("status: %q", got)
	}
}

// An unreadable directory contains nothing that the CLI could obey, so it should not cause an error.
func TestTrustedConfigPassesUnreadableDirectories(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "clone")
	write(t, dir+"/closed/CLAUDE.md", "x")
	write(t, dir+"/open/CLAUDE.md", "x")
	err := nobody.Call(t, dir, func() error {
		if err := os.Chmod(dir+"/closed", 0); err != nil {
			return err
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		err = removeConfig(root)
		return errors.Join(err, os.Chmod(dir+"/closed", 0o700))
	})
	if err != nil || exists(dir+"/open/CLAUDE.md") || !exists(dir+"/closed/CLAUDE.md") {
		t.Errorf("error %v, open removed %v", err, !exists(dir+"/open/CLAUDE.md"))
	}
}

// Imports of trusted instructions should be as on the base branch, or missing.
func TestTrustedImportsAreThoseOfBase(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		"CLAUDE.md":     "See @docs/style.md, **@linked.md** and @my\\ words.md#top; ask @ann, not @later.md or @/etc/passwd.\n",
		"docs/style.md": "Mind @../more.md and @gone.md\n", "more.md": "more\n", "linked.md": "-> docs/target.md",
		"docs/target.md": "target\n", "my words.md": "words\n", "sub/AGENTS.md": "@../more.md\n",
		".claude/rules/r.md": "@x.md\n", ".claude/rules/x.md": "rule\n", ".claude/commands/c.md": "Look at @more.md\n",
	})
	o.commit("evil", map[string]string{
		"docs/style.md": "evil\n", "more.md": "evil\n", "docs/target.md": "evil\n", "my words.md": "evil\n",
		"later.md": "evil\n", "docs/gone.md": "evil\n",
	})
	c := checkout(t, o.files(), Want{Thread: "t", Repo: "acme/api", Ref: "evil", TrustedConfig: true})
	got := workTree(t, c.Dir)
	for name, want := range map[string]string{
		"CLAUDE.md": "See @./.claude/errand-imports/docs/style.md, **@./.claude/errand-imports/linked.md** and " +
			"@./.claude/errand-imports/my\\ words.md#top; ask @ann, not @./.claude/errand-imports/later.md or @/etc/passwd.\n",
		".claude/errand-imports/docs/style.md": "Mind @../more.md and @gone.md\n",
		".claude/errand-imports/more.md":       "more\n", ".claude/errand-imports/linked.md": "target\n",
		".claude/errand-imports/my words.md": "words\n", "sub/AGENTS.md": "@./../.claude/errand-imports/more.md\n",
		".claude/rules/r.md":                        "@./../../.claude/errand-imports/.claude/rules/x.md\n",
		".claude/commands/c.md":                     "Look at @more.md\n", // the CLI imports nothing there
		"docs/style.md":                             "evil\n",             // what the run works on
		".claude/errand-imports/.claude/rules/x.md": "rule\n",
	} {
		if got[name] != want {
			t.Errorf("%s is %q", name, got[name])
		}
	}
	for name, text := range got {
		if strings.HasPrefix(name, ".claude/") && text == "evil\n" || name == ".claude/errand-imports/later.md" {
			t.Errorf("%s is there: %q", name, text)
		}
	}
	if status := testGit(t, c.Dir, "status", "--porcelain", "--untracked-files=all"); status != "" {
		t.Errorf("status:\n%s", status)
	}
}

// What the CLI takes for text stays as it is, whatever files there are: in words, and of directories. All that may
// be an import leads to a copy.
func TestTrustedTextIsLeft(t *testing.T) {
	t.Parallel()
	const same = `---
paths: x
---
Ask ann@x, bé@x or "@(x)", see @docs, @docs/.
`
	const change = `@x and "@x"
**@x**:*@x*,@x
@x␣y
- 'a @x b'
'a'@x'b'

'''
@x
'''
`
	text := strings.NewReplacer("'", "`", "␣", "\u00a0").Replace
	o := newOrigin(t)
	o.commit("main", map[string]string{
		"CLAUDE.md": text(same + change), ".claude/rules/same.md": text(strings.ReplaceAll(same, "@x", "@../../x")),
		"x": "See @../out, @.. and @y\n", "docs/a": "a\n", "y": "y\n",
	})
	o.commit("evil", map[string]string{"out": "evil\n", "docs/a": "evil\n", "x": "evil\n", "y": "evil\n"})
	got := workTree(t,
		checkout(t, o.files(), Want{Thread: "t", Repo: "acme/api", Ref: "evil", TrustedConfig: true}).Dir)
	for name, want := range map[string]string{
		"CLAUDE.md":             text(same + strings.ReplaceAll(change, "@x", "@./.claude/errand-imports/x")),
		".claude/rules/same.md": text(strings.ReplaceAll(same, "@x", "@../../x")),
		// paths out of the repository are disabled: the copy lies deeper
		".claude/errand-imports/x": "See @@../out, @@.. and @y\n",
		".claude/errand-imports/y": "y\n",
	} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// BaseFile reads the base branch, whatever the head and the clone contain.
func TestBaseFile(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{"a/f.yml": "base\n", "link.yml": "-> a/f.yml", "out.yml": "-> /etc/hostname"})
	o.commit("evil", map[string]string{"a/f.yml": "evil\n", "new.yml": "evil\n"})
	w := o.files()
	c := checkout(t, w, Want{Thread: "t", Repo: "acme/api", Ref: "evil"})
	write(t, c.Dir+"/a/f.yml", "worse\n")
	for name, want := range map[string]string{
		"a/f.yml": "base\n", "link.yml": "base\n", "out.yml": "", "new.yml": "", "a": "", "none": "",
	} {
		if got, err := w.BaseFile(t.Context(), c, name, 5); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := w.BaseFile(t.Context(), c, "a/f.yml", 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
}
