package workspace

import (
	"errors"
	"strings"
	"testing"
)

// stranger adds a pull request from a fork and returns its commit.
func (o *origin) stranger() string {
	o.t.Helper()
	testGit(o.t, o.work, "checkout", "--quiet", "--detach", "main")
	testGit(o.t, o.work, "commit", "--quiet", "--allow-empty", "--message", "from a fork")
	commit := o.push("HEAD:refs/pull/7/head")
	testGit(o.t, o.work, "checkout", "--quiet", "main")
	return commit
}

// A name stands only for the ref that it is the name of, whatever else git reads into it.
func TestNameIsOnlyThatOfItsRef(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	main := testGit(t, o.work, "rev-parse", "HEAD")
	pull := o.stranger()
	o.push(pull + ":refs/heads/refs/heads/inner")
	o.push(pull + ":refs/tags/refs/heads/tagged")
	testGit(t, o.bare, "update-ref", "refs/heads/"+main[:12], pull)
	w := o.files()
	checkout(t, w, api)
	for _, name := range []string{
		"x-0-g" + pull, "x-g" + pull, "x-0-g" + pull[:10], pull[:10], "refs/heads/x-0-g" + pull, "refs/tags/x-g" + pull,
		"pull/7/head", "refs/pull/x-g" + pull, "heads/main", "inner", "tagged", "refs/heads/inner", "HEAD", "main-0-g" + pull,
	} {
		for _, want := range []Want{{Ref: name}, {Base: name}} {
			if found, err := w.mirror(api.Repo).resolve(t.Context(), want); !errors.Is(err, ErrRef) {
				t.Errorf("%+v: %+v, %v, want no such ref", want, found, err)
			}
		}
	}
	missing := api
	missing.Ref = "x-0-g" + pull
	if c, err := w.Checkout(t.Context(), missing); !errors.Is(err, ErrRef) {
		t.Errorf("checked out: %+v, %v", c, err)
	}
	kept := api
	kept.Ref, kept.Keep = "x-0-g"+pull, true
	if c := checkout(t, w, kept); c.Head != main || c.From != (Ref{}) {
		t.Errorf("a kept clone: %+v, want it at %s", c, main)
	}

	// A ref may have any of these names, and then it is that ref.
	for _, name := range []string{"x-0-g" + pull, main[:12]} {
		o.push(main + ":refs/heads/" + name)
		c := checkout(t, w, Want{Thread: "own", Repo: "acme/api", Ref: name})
		if want := (Ref{Name: "refs/heads/" + name, Commit: main}); c.Head != main || c.From != want {
			t.Errorf("%s: at %s from %+v, want %+v", name, c.Head, c.From, want)
		}
	}
}

// A tag of a tree or a file is no start for a clone, and trying again does not help.
func TestTagWithoutCommit(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	testGit(t, o.work, "tag", "tree", "HEAD^{tree}")
	testGit(t, o.work, "tag", "--annotate", "file", "HEAD:"+firstFile(t, o.work), "--message", "a key")
	o.push("refs/tags/*:refs/tags/*")
	w := o.files()
	for _, name := range []string{"tree", "file", "refs/tags/file"} {
		c, err := w.Checkout(t.Context(), Want{Thread: "x", Repo: "acme/api", Ref: name})
		if !errors.Is(err, ErrRef) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// firstFile returns the name of a file of a commit.
func firstFile(t *testing.T, dir string) string {
	t.Helper()
	name, _, _ := strings.Cut(testGit(t, dir, "ls-tree", "--name-only", "-r", "HEAD"), "\n")
	return name
}

// What a clone starts from is that which the mirror has under the name.
func TestCloneTellsWhatItStartsFrom(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	main := testGit(t, o.work, "rev-parse", "HEAD")
	testGit(t, o.work, "tag", "--annotate", "v1", "--message", "v1")
	o.push("v1")
	pull := o.stranger()
	w := o.files()
	for _, row := range []struct {
		ref      string
		from     Ref
		isCommit bool
	}{
		{"", Ref{"refs/heads/main", main}, false},
		{"main", Ref{"refs/heads/main", main}, false},
		{"v1", Ref{"refs/tags/v1", main}, false},
		{"refs/pull/7/head", Ref{"refs/pull/7/head", pull}, false},
		{main, Ref{"", main}, true},
		{pull, Ref{"", pull}, true},
	} {
		c := checkout(t, w, Want{Thread: "x", Repo: "acme/api", Ref: row.ref})
		if c.From != row.from || c.From.IsCommit() != row.isCommit {
			t.Errorf("%q: from %+v, a commit: %t; want %+v", row.ref, c.From, c.From.IsCommit(), row.from)
		}
	}
}

// A commit that is only in a pull request is not executed because somebody knows its ID, and a clone in which it was
// read is not kept for a run that executes what is there.
func TestStrayCommitIsNotExecuted(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	main := testGit(t, o.work, "rev-parse", "HEAD")
	pull := o.stranger()
	testGit(t, o.work, "checkout", "--quiet", "--detach", "main")
	testGit(t, o.work, "commit", "--quiet", "--allow-empty", "--message", "pushed over")
	lost := o.push("HEAD:refs/heads/lost")
	o.push(":refs/heads/lost")
	w := o.files()
	for _, commit := range []string{pull, lost} {
		read := Want{Thread: commit, Repo: "acme/api", Ref: commit, Keep: true}
		run := read
		run.Runs = true
		if c, err := w.Checkout(t.Context(), run); !errors.Is(err, ErrRef) {
			t.Errorf("executed: %+v, %v", c, err)
		}
		if c := checkout(t, w, read); c.Head != commit {
			t.Errorf("read: %+v, want it at %s", c, commit)
		}
		if c, err := w.Checkout(t.Context(), run); !errors.Is(err, ErrRef) {
			t.Errorf("executed where it was read: %+v, %v", c, err)
		}
		run.Ref = ""
		if c := checkout(t, w, run); c.Head != main || !c.Fresh {
			t.Errorf("after it was read: %+v, want a new one at %s", c, main)
		}
	}
	want := Want{Thread: "y", Repo: "acme/api", Ref: lost, Runs: true}
	o.push(lost + ":refs/heads/found")
	if c := checkout(t, w, want); c.Head != lost {
		t.Errorf("on a branch again: %+v", c)
	}
	want.Ref = main
	if c := checkout(t, w, want); c.Head != main || !c.From.IsCommit() {
		t.Errorf("on main: %+v", c)
	}
}

// Blanks of Unicode are letters of a name for git: a name ends nowhere else.
func TestNameWithBlanks(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	main := testGit(t, o.work, "rev-parse", "HEAD")
	testGit(t, o.work, "tag", "feature")
	testGit(t, o.work, "tag", "--annotate", "v\u20031", "--message", "v1")
	o.push("refs/tags/*:refs/tags/*")
	pushed := o.commit("other", map[string]string{"x": "x\n"})
	for _, name := range []string{"feat\u3000x", "next\u0085", "main\u00a0", "feature\u00a0/fix-1"} {
		o.push(pushed + ":refs/heads/" + name)
	}
	w := o.files()
	checkout(t, w, api)
	for _, row := range []struct {
		want Want
		at   Ref
	}{
		{Want{Ref: "feat\u3000x"}, Ref{"refs/heads/feat\u3000x", pushed}},
		{Want{Ref: "next\u0085"}, Ref{"refs/heads/next\u0085", pushed}},
		{Want{Ref: "v\u20031"}, Ref{"refs/tags/v\u20031", main}},
		{Want{Ref: "main"}, Ref{"refs/heads/main", main}},
		{Want{Ref: "feature", Own: "errand/fix-1"}, Ref{"refs/tags/feature", main}},
		{Want{Ref: "feat\u3000x", Own: "errand/new"}, Ref{"refs/heads/feat\u3000x", pushed}},
	} {
		if found, err := w.mirror(api.Repo).resolve(t.Context(), row.want); err != nil || found.at != row.at {
			t.Errorf("%+v: %+v, %v, want %+v", row.want, found.at, err, row.at)
		}
	}
	testGit(t, o.bare, "symbolic-ref", "HEAD", "refs/heads/main\u00a0")
	if c := checkout(t, w, Want{Thread: "x", Repo: "acme/api"}); c.Head != pushed || c.From.Name != "refs/heads/main\u00a0" {
		t.Errorf("the default branch: at %s from %+v", c.Head, c.From)
	}
}
