package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestHostileRepositoryNamesAreRefused(t *testing.T) {
	t.Parallel()
	w := open(t, Config{Dir: t.TempDir(), URL: func(repo string) string {
		t.Errorf("asked for the URL of %q", repo)
		return ""
	}})
	for _, repo := range []string{
		"", "api", "/api", "acme/", "acme//api", "acme/api/", "acme/-x/api", "acme/.x/api", "acme/../api/x", "a+b/c",
		"../api", "acme/..", "acme/.", "acme/a..b", "./api", "acme/.git", "acme/.-x", "-x/api", "acme/-x",
		"acme/a b", "acme/a\n", "acme/a;b", "acme/$(x)", "acme\\api", "acme/api\x00", "äcme/api", "https://x/y",
		"acme/" + strings.Repeat("a", 101), strings.Repeat("a/", 100) + "b",
	} {
		if _, err := w.Checkout(t.Context(), Want{Thread: "t", Repo: repo}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v, want ErrNotFound", repo, err)
		}
	}
	for _, repo := range []string{
		"acme/api", "a_c-m.e/A.p_i-1", "0/_", "acme/.github", "github.com/acme/api", "group/sub/api",
		strings.Repeat("a/", (maxRepoName-2)/2) + "bb", // the longest
	} {
		if err := checkRepo(repo); err != nil {
			t.Errorf("%q: %v", repo, err)
		}
	}
}

func TestRefNames(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{
		"-x", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[", `a\b`, "a@{1}", "/a", "a/", "a//b", ".a", "a/.b",
		"a.", "a.lock",
		"a.lock/b", "a\x7f", "a\nb", "refs/remotes/x", "refs/x",
	} {
		if err := (Want{Thread: "t", Repo: "a/b", Ref: ref}).check(); !errors.Is(err, ErrRef) {
			t.Errorf("ref %q: %v, want ErrRef", ref, err)
		}
		if err := (Want{Thread: "t", Repo: "a/b", Base: ref}).check(); !errors.Is(err, ErrRef) {
			t.Errorf("base %q: %v, want ErrRef", ref, err)
		}
	}
	for _, ref := range []string{
		"", "main", "feat/ä-1", "a.b", "v1.0", "dependabot/npm_and_yarn/@x/y", "refs/pull/1/head", "a-/b",
	} {
		if err := (Want{Thread: "t", Repo: "a/b", Ref: ref}).check(); err != nil {
			t.Errorf("ref %q: %v", ref, err)
		}
	}
}

func TestThreadNames(t *testing.T) {
	t.Parallel()
	w := open(t, Config{Dir: t.TempDir(), URL: func(string) string { return "" }})
	safe := regexp.MustCompile(`^[a-z0-9-]{17,60}$`)
	seen := map[string]string{}
	for _, thread := range []string{
		"slack/T1/C1/1.2", "slack/t1/c1/1.2", "slack-t1-c1-1-2", "github/acme/api#7", "github/acme/api#7/review", "..",
		"../..", "/", "\x00", "-rf", "ä", "ö", strings.Repeat("x", 5000), strings.Repeat("x", 5001), "a\nb", ".",
	} {
		dir := w.threadDir(thread)
		if filepath.Dir(dir) != filepath.Join(w.cfg.Dir, "threads") || !safe.MatchString(filepath.Base(dir)) {
			t.Errorf("%.20q: %s", thread, dir)
		}
		if other, found := seen[dir]; found {
			t.Errorf("%.20q and %.20q share %s", thread, other, dir)
		}
		seen[dir] = thread
	}
}

func TestDirectoriesOfAThread(t *testing.T) {
	t.Parallel()
	w := newOrigin(t).files()
	c := checkout(t, w, api)
	apart := func(thread string) (string, error) { return FilesApart(w, thread, "a1") }
	for name, dir := range map[string]func(string) (string, error){
		"scratch": w.Scratch, "files": w.Files, "apart": apart,
	} {
		first, err := dir(api.Thread)
		if err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(first); err != nil || len(entries) > 0 {
			t.Errorf("%s is not empty: %v, %v", name, entries, err)
		}
		if rel, err := filepath.Rel(c.Dir, first); err != nil || !strings.HasPrefix(rel, "..") {
			t.Errorf("%s is in the clone: %s", name, first)
		}
		write(t, first+"/kept", "x")
		if other, err := dir("another"); err != nil || other == first {
			t.Errorf("%s of another thread: %s, %v", name, other, err)
		}
		if again, err := dir(api.Thread); again != first || err != nil || !exists(first+"/kept") {
			t.Errorf("%s is not kept: %s, %v", name, again, err)
		}
		outside := t.TempDir()
		write(t, first, "-> "+outside)
		if again, err := dir(api.Thread); err != nil || again != first {
			t.Errorf("%s: %s, %v", name, again, err)
		}
		if fi, err := os.Lstat(first); err != nil || !fi.IsDir() {
			t.Errorf("%s is a link", name)
		}
		if _, err := dir(""); err == nil {
			t.Errorf("%s without a thread", name)
		}
	}
	if _, err := w.Checkout(t.Context(), Want{Repo: "acme/api"}); err == nil {
		t.Error("clone without a thread")
	}
}

// Nested groups and hosts have separate directories, none inside another repository's.
func TestRepositoryPaths(t *testing.T) {
	t.Parallel()
	for repo, want := range map[string]string{
		"acme/api": "acme|api", "github.com/acme/api": "github.com+acme|api", "group/sub/.github": "group+sub|.github",
	} {
		dir, name := repoPath(repo)
		if dir+"|"+name != want || repoAt(dir, name) != repo {
			t.Errorf("%s: %s, %s", repo, dir, name)
		}
	}
}

// The work in a clone of a repository in nested groups is kept like that of others.
func TestWorkOfANestedRepository(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := open(t, Config{Dir: t.TempDir(), URL: func(string) string { return o.bare }})
	c := checkout(t, w, Want{Thread: "t", Repo: "group/sub/api"})
	write(t, c.Dir+"/new.txt", "x\n")
	if b, err := w.Snapshot(t.Context(), c, 1<<20); err != nil || b.Work == "" {
		t.Errorf("snapshot %+v, %v", b, err)
	}
	if names, err := w.Save(t.Context(), "t", t.TempDir()); err != nil || len(names) != 2 {
		t.Errorf("saved %v, %v", names, err)
	}
}
