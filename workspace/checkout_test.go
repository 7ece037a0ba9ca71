package workspace

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckoutMakesCloneWithoutRemote(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	main := testGit(t, o.work, "rev-parse", "HEAD")
	topic := o.commit("topic", map[string]string{"new.txt": "x\n"})
	w := o.files()
	want := api
	want.Ref = "topic"
	c := checkout(t, w, want)

	expect := Clone{
		Repo: "acme/api", Dir: c.Dir, Mirror: filepath.Join(w.cfg.Dir, "mirrors/acme/api.git"), Head: topic,
		From: Ref{Name: "refs/heads/topic", Commit: topic},
		Base: "main", BaseSHA: main, Protected: "main", ProtectedSHA: main, Fresh: true,
	}
	if diff := cmp.Diff(expect, c); diff != "" {
		t.Errorf("clone (-want +got):\n%s", diff)
	}
	if got := workTree(t, c.Dir); got["new.txt"] != "x\n" {
		t.Errorf("work tree: %v", got)
	}
	for _, row := range []struct{ what, want string }{
		{"remote", ""},
		{"config --get-regexp ^(remote|branch)", ""},
		{"symbolic-ref --short HEAD", "topic"},
		{"diff --name-only origin/main...HEAD", "new.txt"},
		{"rev-parse origin/HEAD", main},
		{"status --porcelain", ""},
	} {
		if got, _ := tryGit(t, c.Dir, strings.Fields(row.what)...); got != row.want {
			t.Errorf("git %s: got %q, want %q", row.what, got, row.want)
		}
	}
	if got := testGit(t, c.Dir, "count-objects", "-v"); !strings.Contains(got, "alternate: "+c.Mirror) {
		t.Errorf("objects are not borrowed:\n%s", got)
	}
}

func TestCheckoutRefs(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	main := testGit(t, o.work, "rev-parse", "HEAD")
	deep := o.commit("a/b", nil)
	testGit(t, o.work, "tag", "--annotate", "v1", "--message", "v1")
	o.push("v1")
	testGit(t, o.work, "checkout", "--quiet", "--detach")
	testGit(t, o.work, "commit", "--quiet", "--allow-empty", "--message", "from a fork")
	pull := o.push("HEAD:refs/pull/7/head")
	testGit(t, o.work, "commit", "--quiet", "--allow-empty", "--message", "pushed over")
	lost := o.push("HEAD:refs/heads/lost")
	o.push(":refs/heads/lost")

	w := o.files()
	for _, row := range []struct{ ref, head, branch string }{
		{"", main, "main"},
		{"main", main, "main"},
		{"a/b", deep, "a/b"},
		{"refs/heads/a/b", deep, "a/b"},
		{"v1", deep, ""},
		{"refs/tags/v1", deep, ""},
		{deep, deep, ""},
		{"refs/pull/7/head", pull, ""},
		{lost, lost, ""}, // on no branch any more
	} {
		want := api
		want.Ref = row.ref
		c := checkout(t, w, want)
		branch, _ := tryGit(t, c.Dir, "symbolic-ref", "--short", "--quiet", "HEAD")
		if c.Head != row.head || branch != row.branch || testGit(t, c.Dir, "rev-parse", "HEAD") != row.head {
			t.Errorf("ref %q: head %s on %q, want %s on %q", row.ref, c.Head, branch, row.head, row.branch)
		}
	}
	want := api
	want.Ref = "refs/pull/7/head"
	if got := testGit(t, checkout(t, w, want).Dir, "rev-parse", "pull/7/head"); got != pull {
		t.Errorf("pull/7/head in the clone is %s, want %s", got, pull)
	}
}

// A clone in which strangers' content was read should not be reused: later tasks of the thread should get another one.
func TestStrangeIsNotKept(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	main := testGit(t, o.work, "rev-parse", "HEAD")
	testGit(t, o.work, "checkout", "--quiet", "--detach")
	testGit(t, o.work, "commit", "--quiet", "--allow-empty", "--message", "from a fork")
	pull := o.push("HEAD:refs/pull/7/head")
	w := o.files()
	want := api
	want.Keep, want.Ref, want.Strange = true, "refs/pull/7/head", true
	for range 2 {
		if c := checkout(t, w, want); c.Head != pull {
			t.Errorf("a stranger's: at %s, want %s", c.Head, pull)
		}
	}
	ours := api
	ours.Keep = true
	c := checkout(t, w, ours)
	if c.Head != main || !c.Fresh {
		t.Errorf("ours: %+v, want a new one at %s", c, main)
	}
	if c := checkout(t, w, ours); c.Fresh {
		t.Error("ours is not kept")
	}
	if names, err := w.Save(t.Context(), ours.Thread, t.TempDir()); err != nil || len(names) != 0 {
		t.Errorf("saved %v, %v", names, err)
	}
}

func TestCheckoutErrors(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	for _, row := range []struct {
		name string
		want Want
		is   error
		text string
	}{
		{"no branch", Want{Repo: "acme/api", Ref: "nope"}, ErrRef, `clone acme/api: reference not found: "nope"`},
		{"no base", Want{Repo: "acme/api", Base: "nope"}, ErrRef, `clone acme/api: reference not found: "nope"`},
		{
			"no branch with a full name",
			Want{Repo: "acme/api", Ref: "refs/heads/nope"},
			ErrRef,
			`clone acme/api: reference not found: "refs/heads/nope"`,
		},
		{
			"no pull request",
			Want{Repo: "acme/api", Ref: "refs/pull/9/head"},
			ErrRef,
			`clone acme/api: reference not found: "refs/pull/9/head"`,
		},
		{
			"no commit",
			Want{Repo: "acme/api", Ref: strings.Repeat("ab", 20)},
			ErrRef,
			"clone acme/api: reference not found (fatal: ",
		},
		{
			"revision expression",
			Want{Repo: "acme/api", Ref: "main~1"},
			ErrRef,
			`clone acme/api: reference not found: "main~1" is not a name for one`,
		},
		{"option", Want{Repo: "acme/api", Ref: "--upload-pack=x"}, ErrRef, "clone acme/api: reference not found: "},
		{"our own refs", Want{Repo: "acme/api", Ref: "refs/errand/x"}, ErrRef, "clone acme/api: reference not found: "},
		{
			"no repository",
			Want{Repo: "acme/nope"},
			ErrNotFound,
			"clone acme/nope: repository not found or no access (fatal: ",
		},
	} {
		row.want.Thread = row.name
		_, err := w.Checkout(t.Context(), row.want)
		if !errors.Is(err, row.is) || !strings.HasPrefix(err.Error(), row.text) {
			t.Errorf("%s: got %v, want %q", row.name, err, row.text)
		}
	}
	testGit(t, o.root, "init", "--quiet", "--bare", "acme/empty.git")
	if _, err := w.Checkout(t.Context(), Want{Thread: "t", Repo: "acme/empty"}); !errors.Is(err, ErrRef) {
		t.Errorf("empty repository: %v, want ErrRef", err)
	}
}

func TestKeepLeavesWorkAlone(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	want := api
	want.Keep = true
	first := checkout(t, w, want)
	if !first.Fresh {
		t.Error("the first clone is not fresh")
	}
	write(t, first.Dir+"/done.txt", "committed\n")
	testGit(t, first.Dir, "add", "--all")
	testGit(t, first.Dir, "commit", "--quiet", "--message", "work")
	head := testGit(t, first.Dir, "rev-parse", "HEAD")
	write(t, first.Dir+"/README.md", "dirty\n")
	write(t, first.Dir+"/untracked.txt", "x\n")
	write(t, first.Dir+"/.git/index.lock", "of a killed git")
	before := workTree(t, first.Dir)

	main := o.commit("main", map[string]string{"README.md": "two\n"})
	o.commit("gone", nil)
	kept := checkout(t, w, want)
	if kept.Fresh || kept.Dir != first.Dir || kept.Head != head || kept.BaseSHA != main {
		t.Errorf("kept %+v, want head %s and base %s", kept, head, main)
	}
	if diff := cmp.Diff(before, workTree(t, kept.Dir)); diff != "" {
		t.Errorf("work tree changed (-before +after):\n%s", diff)
	}
	if got := testGit(t, kept.Dir, "rev-parse", "origin/main"); got != main {
		t.Errorf("origin/main is %s, want %s", got, main)
	}
	// A remaining lock would stop the agent.
	testGit(t, kept.Dir, "commit", "--quiet", "--all", "--message", "more")

	// If a branch is deleted on the remote, even the wanted one, the work is kept.
	o.push(":refs/heads/gone")
	want.Ref = "gone"
	if kept = checkout(t, w, want); kept.Fresh {
		t.Error("the clone was recreated because its branch is gone")
	}
	if out, err := tryGit(t, kept.Dir, "rev-parse", "--verify", "origin/gone"); err == nil {
		t.Errorf("origin/gone is still there: %s", out)
	}
}

func TestNotKeepResets(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	write(t, c.Dir+"/.gitignore", "ignored\n")
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "work")
	write(t, c.Dir+"/README.md", "dirty\n")
	write(t, c.Dir+"/ignored/nested/.git/config", "[core]\n")
	write(t, filepath.Join(filepath.Dir(c.Dir), ".api~tmp", "half"), "left by a killed process")

	main := o.commit("main", map[string]string{"README.md": "two\n"})
	again := checkout(t, w, api)
	if !again.Fresh || again.Head != main || again.Dir != c.Dir {
		t.Errorf("got %+v, want a fresh clone at %s", again, main)
	}
	if diff := cmp.Diff(map[string]string{"README.md": "two\n"}, workTree(t, c.Dir)); diff != "" {
		t.Errorf("work tree (-want +got):\n%s", diff)
	}
	if left := leftovers(t, c.Dir); len(left) > 0 {
		t.Errorf("left beside the clone: %v", left)
	}
}

func TestThreadsAndRepositoriesAreApart(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	testGit(t, o.root, "clone", "--quiet", "--bare", o.bare, "other/api.git")
	w := o.files()
	dirs := map[string]bool{}
	for _, want := range []Want{
		{Thread: "a", Repo: "acme/api"}, {Thread: "b", Repo: "acme/api"}, {Thread: "a", Repo: "other/api"},
	} {
		want.Keep = true
		c := checkout(t, w, want)
		if !c.Fresh || dirs[c.Dir] {
			t.Errorf("%+v shares %s", want, c.Dir)
		}
		dirs[c.Dir] = true
	}
}
