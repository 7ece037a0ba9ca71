package workspace

import (
	"context"
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
		".claude/a.md": "-> ../AGENTS.md", "AGENTS.md": "base\n", ".claude/settings.json": "base\n",
		".claude/hooks/a.sh": "base\n", ".claude/skills": "-> ../skills", "skills/s/SKILL.md": "base\n",
		"sub/.claude/x.md": "base\n", "lost/.claude/x.md": "base\n", "file/.claude/x.md": "base\n",
		".claude/out": "-> /etc/hostname", ".claude/dangling": "-> nothing", "same/.mcp.json": "base\n",
		"case/.Claude/settings.json": "base\n",
	})
	o.link(".claude/submodule", strings.Repeat("1", 40)) // nobody has looked at its files
	testGit(t, o.work, "commit", "--quiet", "--message", "link")
	o.push("HEAD:refs/heads/main")
	o.commit("evil", map[string]string{
		".claude/a.md": "evil\n", "AGENTS.md": "evil\n", "skills/s/SKILL.md": "evil\n", ".mcp.json": "evil\n",
		".claude/settings.json": "evil\n", ".claude/settings.local.json": "evil\n", ".claude/hooks/a.sh": "",
		".claude/hooks/b.sh": "evil\n", "sub/.claude/x.md": "", "sub/.claude/settings.json": "evil\n",
		"sub/.CLAUDE/y.md": "evil\n", ".claude/local.md": "-> ../skills/s/SKILL.md", "lost": "",
		"file": "no directory any more\n", "code.go": "package x\n",
	})
	w := o.files()
	want := Want{Thread: "t", Repo: "acme/api", Ref: "evil", TrustedConfig: true}
	c := checkout(t, w, want)
	trusted := map[string]string{
		".claude/a.md": "base\n", ".claude/settings.json": "base\n", ".claude/hooks/a.sh": "base\n",
		".claude/skills/s/SKILL.md": "base\n", "sub/.claude/x.md": "base\n", "lost/.claude/x.md": "base\n",
		"same/.mcp.json": "base\n", "case/.Claude/settings.json": "base\n", "AGENTS.md": "evil\n", // text that the agent reads like any other
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
	write(t, c.Dir+"/.claude/a.md", "evil\n")
	write(t, c.Dir+"/.git/info/exclude", "of the agent\n")
	o.commit("main", map[string]string{".claude/a.md": "newer\n", "same": ""})
	want.Keep = true
	c = checkout(t, w, want)
	trusted[".claude/a.md"] = "newer\n"
	delete(trusted, "same/.mcp.json")
	if diff := cmp.Diff(trusted, configOf(t, c.Dir)); c.Fresh || diff != "" {
		t.Errorf("fresh %v, configuration of a kept clone (-base +got):\n%s", c.Fresh, diff)
	}
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

// Anyone who can push chooses the base of a pull request. So it is not the branch whose state counts as trusted.
func TestBaseOfAPullRequestIsNotTrusted(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	is := func(branch string) map[string]string {
		return map[string]string{
			"CLAUDE.md": branch + "\n", ".mcp.json": branch + "\n", ".github/errand.yml": branch + "\n",
			"skills/SKILL.md": branch + "\n",
		}
	}
	for _, branch := range []string{"main", "develop", "stack"} {
		o.commit(branch, is(branch))
	}
	o.commit("topic", map[string]string{"code.go": "package x\n"})
	o.push("topic:refs/tags/no-branch")
	w := o.files()
	for protected, want := range map[string]string{"": "main", "develop": "develop", "refs/heads/main": "main"} {
		c := checkout(t, w, Want{
			Thread: "t", Repo: "acme/api", Ref: "topic", Base: "stack", Protected: protected, TrustedConfig: true,
		})
		if c.Base != "stack" || c.Protected != want || c.BaseSHA == c.ProtectedSHA {
			t.Errorf("protected %q: %+v", protected, c)
		}
		if got := configOf(t, c.Dir)[".mcp.json"]; got != want+"\n" {
			t.Errorf("protected %q: .mcp.json is %q", protected, got)
		}
		set, err := w.Instructions(t.Context(), c)
		if err != nil || len(set.Texts) != 1 || set.Texts[0].Text != want+"\n" {
			t.Errorf("protected %q: instructions %+v, %v", protected, set.Texts, err)
		}
		if got, err := w.BaseFile(t.Context(), c, ".github/errand.yml", 100); err != nil || got != want+"\n" {
			t.Errorf("protected %q: errand.yml is %q, %v", protected, got, err)
		}
		ids, err := EnvironmentsOf(w).Versions(t.Context(), c, []string{"CLAUDE.md"})
		if id := testGit(t, c.Dir, "rev-parse", "origin/"+want+":CLAUDE.md"); err != nil || ids[0] != id {
			t.Errorf("protected %q: version %q, want %q, %v", protected, ids, id, err)
		}
		err = EnvironmentsOf(w).make(t.Context(), c, "of-"+want,
			func(_ context.Context, setUp Clone, _ Layer) error {
				if setUp.Head != c.ProtectedSHA {
					t.Errorf("protected %q: the set-up is at %s", protected, setUp.Head)
				}
				return errNoDir
			})
		if !errors.Is(err, errNoDir) {
			t.Error(err)
		}
	}
	for _, name := range []string{"no-branch", "gone", o.commit("stack", nil)} {
		want := Want{Thread: "t", Repo: "acme/api", Ref: "topic", Base: "stack", Protected: name, Keep: true}
		if c, err := w.Checkout(t.Context(), want); !errors.Is(err, ErrRef) {
			t.Errorf("protected %s: %+v, %v", name, c, err)
		}
	}
}

func TestTrustedConfigIsPutOnlyOnDemand(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{".mcp.json": "base\n"})
	o.commit("topic", map[string]string{".mcp.json": "topic\n"})
	c := checkout(t, o.files(), Want{Thread: "t", Repo: "acme/api", Ref: "topic"})
	if got := configOf(t, c.Dir)[".mcp.json"]; got != "topic\n" {
		t.Errorf(".mcp.json is %q", got)
	}
}

// A conflict in configuration cannot be hidden, and must not make the clone unusable.
func TestTrustedConfigInConflict(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{".mcp.json": "base\n"})
	o.commit("topic", map[string]string{".mcp.json": "topic\n"})
	o.commit("main", map[string]string{".mcp.json": "main\n"})
	w := o.files()
	want := Want{Thread: "t", Repo: "acme/api", Ref: "topic", Keep: true}
	c := checkout(t, w, want)
	if out, err := tryGit(t, c.Dir, "merge", "origin/main"); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	want.TrustedConfig = true
	c = checkout(t, w, want)
	if got := configOf(t, c.Dir)[".mcp.json"]; c.Fresh || got != "main\n" {
		t.Errorf("fresh %v, .mcp.json is %q", c.Fresh, got)
	}
	if got := testGit(t, c.Dir, "status", "--porcelain"); got != "UU .mcp.json" {
		t.Errorf("status: %q", got)
	}
}

// An unreadable directory contains nothing that the CLI could obey, so it should not cause an error.
func TestTrustedConfigPassesUnreadableDirectories(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "clone")
	write(t, dir+"/closed/.mcp.json", "x")
	write(t, dir+"/open/.mcp.json", "x")
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
	if err != nil || exists(dir+"/open/.mcp.json") || !exists(dir+"/closed/.mcp.json") {
		t.Errorf("error %v, open removed %v", err, !exists(dir+"/open/.mcp.json"))
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
