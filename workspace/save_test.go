package workspace

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// saved saves a thread's work, wants a bundle and a patch of it, and gives what a developer gets of both:
// refs/saved/… by the bundle,
// in a checkout of main to which the patch was applied.
func (o *origin) saved(w *Workspace, thread string) (dir string) {
	o.t.Helper()
	dir = o.t.TempDir()
	names, err := w.Save(o.t.Context(), thread, dir)
	if err != nil || len(names) != 2 {
		o.t.Fatalf("saved %v, %v", names, err)
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			o.t.Errorf("%v, %v", info, err)
		}
	}
	again := o.t.TempDir()
	testGit(o.t, again, "clone", "--quiet", o.bare, ".")
	testGit(o.t, again, "fetch", "--quiet", filepath.Join(dir, names[0]), "refs/*:refs/saved/*")
	testGit(o.t, again, "apply", filepath.Join(dir, names[1]))
	if left := listed(o.t, dir); len(left) != 2 {
		o.t.Errorf("left %v", left)
	}
	return again
}

func listed(t *testing.T, dir string) []string {
	t.Helper()
	names, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Everything that only the clone has should be recoverable with a clone of the repository.
func TestWorkIsSaved(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	commit := func(name, content string) {
		t.Helper()
		write(t, c.Dir+"/"+name, content)
		testGit(t, c.Dir, "add", "--all")
		testGit(t, c.Dir, "commit", "--quiet", "--message", name)
	}
	testGit(t, c.Dir, "checkout", "--quiet", "--detach")
	commit("lost.txt", "on no branch\n")
	lost := testGit(t, c.Dir, "rev-parse", "HEAD")
	testGit(t, c.Dir, "tag", "mine")
	commit("amended.txt", "dropped\n")
	dropped := testGit(t, c.Dir, "rev-parse", "HEAD")
	testGit(t, c.Dir, "checkout", "--quiet", "-b", "other")
	testGit(t, c.Dir, "reset", "--quiet", "--hard", "HEAD~1")
	testGit(t, c.Dir, "checkout", "--quiet", "main")
	aside := testGit(t, c.Dir, "commit-tree", "-m", "kept aside", "HEAD^{tree}")
	testGit(t, c.Dir, "update-ref", "refs/aside/one", aside) // git keeps no reflog of it
	for _, n := range []string{"first", "second"} {
		write(t, c.Dir+"/README.md", n+"\n")
		testGit(t, c.Dir, "stash")
	}
	stashed := testGit(t, c.Dir, "rev-parse", "stash@{1}")
	commit("new.txt", "committed\n")
	write(t, c.Dir+"/staged.txt", "staged\n")
	testGit(t, c.Dir, "add", "--all")
	write(t, c.Dir+"/README.md", "changed\n")
	write(t, c.Dir+"/bytes", "\x00\xff")
	fifo(t, c.Dir+"/pipe")

	again := o.saved(w, api.Thread)
	for ref, want := range map[string]string{
		"heads/main:new.txt": "committed", "heads/other:lost.txt": "on no branch", "tags/mine:lost.txt": "on no branch",
		"errand/work:README.md": "changed", "errand/index:staged.txt": "staged",
		"stash:README.md": "second",
	} {
		if got := testGit(t, again, "show", "refs/saved/"+ref); got != want {
			t.Errorf("%s is %q, want %q", ref, got, want)
		}
	}
	for _, sha := range []string{lost, dropped, aside, stashed} {
		testGit(t, again, "cat-file", "-e", sha+"^{tree}")
	}
	for name, want := range map[string]string{
		"README.md": "changed\n", "new.txt": "committed\n", "staged.txt": "staged\n", "bytes": "\x00\xff",
	} {
		if got := workTree(t, again)[name]; got != want {
			t.Errorf("patched %s is %q, want %q", name, got, want)
		}
	}
}

// Large work is saved as well.
func TestLargeWorkIsSaved(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	large := strings.Repeat("0123456789abcdef", maxHeld/16+1) + "end"
	write(t, c.Dir+"/model.bin", large)
	if got := workTree(t, o.saved(w, api.Thread))["model.bin"]; got != large {
		t.Errorf("%d bytes, want %d", len(got), len(large))
	}
}

// A large file that becomes shorter while git reads it is an error: git would take what follows for its content.
func TestLargeFileIsTruncated(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "model.bin")
	write(t, name, "abc")
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	in := &importer{large: &largeFile{f, 5}}
	defer in.close()
	if got, err := io.ReadAll(in); string(got) != "abc" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("git reads %q, %v", got, err)
	}
}

func TestNothingToSave(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w, dir := o.files(), t.TempDir()
	for _, step := range []func(){func() {}, func() { checkout(t, w, api) }} {
		step()
		write(t, dir+"/.saving/work-half.bundle", "of a killed process")
		if names, err := w.Save(t.Context(), api.Thread, dir); len(names) != 0 || err != nil ||
			len(listed(t, dir)) != 0 {
			t.Errorf("saved %v, %v, left %v", names, err, listed(t, dir))
		}
	}
}

// Work that cannot be saved should be an error for the whole thread: it must not look saved.
func TestWorkThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		plant func(t *testing.T, dir string)
		want  string
	}{
		"other repository": {func(t *testing.T, dir string) {
			testGit(t, dir, "init", "--quiet", "nested")
			write(t, dir+"/nested/x", "x\n")
		}, "nested/"},
		"odd name":      {func(t *testing.T, dir string) { write(t, dir+"/.GIT/x", "x\n") }, ".GIT/x"},
		"no repository": {func(t *testing.T, dir string) { write(t, dir+"/.git/HEAD", "x\n") }, "git rev-parse"},
		"no objects": {func(t *testing.T, dir string) {
			testGit(t, dir, "commit", "--quiet", "--allow-empty", "--message", "x")
			write(t, dir+"/.git/objects", "")
			write(t, dir+"/.git/objects/x", "")
		}, "git rev-parse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			w, dir := o.files(), t.TempDir()
			testGit(t, o.root, "clone", "--quiet", "--bare", o.bare, "other/api.git")
			fine := checkout(t, w, Want{Thread: api.Thread, Repo: "other/api"})
			write(t, fine.Dir+"/new.txt", "x\n")
			c := checkout(t, w, api)
			row.plant(t, c.Dir)
			names, err := w.Save(t.Context(), api.Thread, dir)
			if err == nil || !strings.Contains(err.Error(), row.want) || len(names) != 0 || len(listed(t, dir)) != 0 {
				t.Errorf("saved %v, %v, want an error with %q", names, err, row.want)
			}
			if row.want != "git rev-parse" && !errors.Is(err, ErrUnsaved) {
				t.Errorf("%v is not ErrUnsaved", err)
			}
		})
	}
}

// A clone that was set aside may have work, too.
func TestWorkSetAsideIsSaved(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	write(t, c.Dir+"/README.md", "changed\n")
	aside := filepath.Join(filepath.Dir(c.Dir), ".api~broken")
	if err := os.Rename(c.Dir, aside); err != nil {
		t.Fatal(err)
	}
	if got := workTree(t, o.saved(w, api.Thread))["README.md"]; got != "changed\n" {
		t.Errorf("README.md is %q", got)
	}
	write(t, aside+"/.git/HEAD", "x")
	if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); err == nil {
		t.Errorf("saved %v of an unreadable clone", names)
	}
}

// What another version of errand keeps beside a clone is no clone.
func TestNotesOfOtherVersionsAreNoClones(t *testing.T) {
	t.Parallel()
	w := newOrigin(t).files()
	c := checkout(t, w, api)
	write(t, w.mirror(api.Repo).clone(c.Dir).beside("later"), "x")
	if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); err != nil || len(names) > 0 {
		t.Errorf("saved %v, %v", names, err)
	}
}
