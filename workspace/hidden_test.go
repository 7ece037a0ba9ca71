package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// Changes that git is set to ignore are work all the same, but not the files that we put in place of the checkout's
// configuration. They are not published, as no commit of the agent's git would have them.
func TestHiddenChangesAreWork(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		".mcp.json": "trusted\n", "settings.go": "one\n", "other.go": "one\n",
	})
	o.commit("topic", map[string]string{".mcp.json": "hostile\n"})
	w := o.files()
	want := api
	want.Ref, want.TrustedConfig = "topic", true
	c := checkout(t, w, want)
	if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); len(names) != 0 || err != nil {
		t.Errorf("saved %v, %v of errand's own files", names, err)
	}
	testGit(t, c.Dir, "update-index", "--assume-unchanged", "README.md")
	testGit(t, c.Dir, "update-index", "--skip-worktree", "README.md", "settings.go")
	hidden := map[string]string{"README.md": "two\n", "settings.go": "two\n"}
	for name, content := range hidden {
		write(t, c.Dir+"/"+name, content)
	}
	check := func(what string, files map[string]string) {
		t.Helper()
		for name, want := range hidden {
			if files[name] != want {
				t.Errorf("%s: %s is %q, want %q", what, name, files[name], want)
			}
		}
	}
	check("saved", workTree(t, o.saved(w, api.Thread)))
	b := bundle(t, w, c)
	check("restored", workTree(t, o.restored(o.files(), b).Dir))
	if want := []string{"the index flags of README.md, settings.go"}; !slices.Equal(b.Missing, want) {
		t.Errorf("a checkpoint lacks %q", b.Missing)
	}
	files, _ := changed(t, w, c)
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, slices.Sorted(maps.Keys(hidden))) {
		t.Errorf("changed: %q", got)
	}
	p := publication()
	p.TrustedConfig = true
	if pushed := published(t, w, c, p); pushed.Commit != "" {
		t.Errorf("published %+v", pushed)
	}
	for _, content := range []string{"two\n", "three\n"} {
		write(t, c.Dir+"/other.go", content)
		published(t, w, c, p)
		if got := testGit(t, o.bare, "diff", "--name-only", "topic", ownBranch); got != "other.go" {
			t.Errorf("the branch changes\n%s", got)
		}
	}
}

// sparse returns a clone where an agent has left out a directory.
func sparse(t *testing.T) (*origin, *Workspace, Clone) {
	t.Helper()
	o := newOrigin(t)
	o.commit("main", map[string]string{"out/left-out.go": "x\n", "out/of/it.go": "y\n"})
	w := o.files()
	c := checkout(t, w, api)
	testGit(t, c.Dir, "sparse-checkout", "set", "--cone", "in")
	if exists(c.Dir + "/out") {
		t.Fatal("it is there")
	}
	return o, w, c
}

// Files outside a sparse checkout were not removed.
func TestSparseCheckoutIsNoWork(t *testing.T) {
	t.Parallel()
	_, w, c := sparse(t)
	for _, split := range []string{"--no-split-index", "--split-index"} {
		testGit(t, c.Dir, "update-index", split)
		if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); len(names) != 0 || err != nil {
			t.Errorf("%s: saved %v, %v", split, names, err)
		}
		if b := bundle(t, w, c); b.Work != "" || len(b.Missing) > 0 {
			t.Errorf("%s: a checkpoint has %+v", split, b)
		}
		if files, left := changed(t, w, c); len(files)+len(left) > 0 {
			t.Errorf("%s: changed: %v, left %v", split, files, left)
		}
	}
}

// They were not, either, if the index that says so is damaged or gone.
func TestSparseCheckoutWithoutAnIndex(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"damaged": "garbage", "gone": ""} {
		o, w, c := sparse(t)
		p := publication()
		want := map[string]string{"out/left-out.go": "x\n", "out/of/it.go": "y\n"}
		for _, now := range []string{"two\n", "three\n"} { // the second has the index that errand has written
			write(t, c.Dir+"/README.md", now)
			if now == "two\n" {
				write(t, c.Dir+"/.git/index", content)
			}
			want["README.md"] = now
			if diff := cmp.Diff(want, workTree(t, o.restored(o.files(), bundle(t, w, c)).Dir)); diff != "" {
				t.Errorf("%s: a checkpoint has:\n%s", name, diff)
			}
			published(t, w, c, p)
			if files, _ := o.branch(ownBranch); !maps.Equal(files, want) {
				t.Errorf("%s: published %q", name, files)
			}
		}
	}
}

// An index of several parts is copied completely or not at all.
func TestPartsOfTheIndex(t *testing.T) {
	t.Parallel()
	dir := fstest.MapFS{"index": {}, "sharedindex.1": {}, "sharedindex.2": {}}
	names, err := matching(dir, "sharedindex.*")
	if fmt.Sprint(names, err) != "[sharedindex.1 sharedindex.2] <nil>" {
		t.Error(names, err)
	}
	if _, err := matching(unlisted{dir}, "sharedindex.*"); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}

// unlisted is a directory that may not be read.
type unlisted struct{ fs.FS }

func (unlisted) ReadDir(string) ([]fs.DirEntry, error) { return nil, fs.ErrPermission }

// Whatever features of the index an agent's git uses, checkpoints have what is staged and what is on disk, and what its
// sparse checkout leaves out stays so: the clone has the published commit, and the next publication removes none of it.
func TestFeaturesOfTheIndex(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(t *testing.T, dir string){
		"split": func(t *testing.T, dir string) { testGit(t, dir, "update-index", "--split-index") },
		"sparse directories": func(t *testing.T, dir string) {
			testGit(t, dir, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
		},
		// The cache hides a new file, and the monitor, which never says that a file has changed, another change.
		"version 4 with untracked cache and monitor": func(t *testing.T, dir string) {
			write(t, dir+"/.git/monitor", "#!/bin/sh\nprintf 'token\\0'\n")
			testGit(t, dir, "config", "core.trustctime", "false")
			testGit(t, dir, "config", "core.fsmonitor", dir+"/.git/monitor")
			testGit(t, dir, "update-index", "--index-version", "4", "--force-untracked-cache", "--fsmonitor")
			testGit(t, dir, "status")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, w, c := sparse(t)
			want := map[string]string{"out/left-out.go": "x\n", "out/of/it.go": "y\n"}
			p := publication()
			for _, content := range []string{"two", "three"} {
				write(t, c.Dir+"/README.md", "staged "+content)
				testGit(t, c.Dir, "add", "README.md")
				use(t, c.Dir)
				before, err := os.Stat(c.Dir)
				if err != nil {
					t.Fatal(err)
				}
				write(t, c.Dir+"/README.md", content)
				write(t, c.Dir+"/"+content, "new")
				if err := os.Chtimes(c.Dir, before.ModTime(), before.ModTime()); err != nil {
					t.Fatal(err)
				}
				want["README.md"], want[content] = content, "new"

				restored := o.restored(o.files(), bundle(t, w, c)).Dir
				if diff := cmp.Diff(want, workTree(t, restored)); diff != "" {
					t.Errorf("a checkpoint has:\n%s", diff)
				}
				if got := testGit(t, restored, "show", ":README.md"); got != "staged "+content {
					t.Errorf("%q is staged in a checkpoint", got)
				}
				if files, left := changed(t, w, c); len(files) != 2 || len(left) > 0 {
					t.Errorf("changed: %v, left %v", files, left)
				}
				published(t, w, c, p)
				if files, _ := o.branch(ownBranch); !maps.Equal(files, want) {
					t.Errorf("published %q", files)
				}
				if out := testGit(t, c.Dir, "status", "--porcelain"); out != "" {
					t.Errorf("status: %s", out)
				}
			}
		})
	}
}
