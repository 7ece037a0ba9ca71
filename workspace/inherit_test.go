package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inodes of all files in a work tree.
func inodes(t *testing.T, dir string) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for name := range workTree(t, dir) {
		all[name] = inode(t, filepath.Join(dir, name))
	}
	return all
}

// A checkout of the next head writes only the files that changed.
func TestNextHeadWritesWhatChanged(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{"steady": "x\n", "gone/file": "x\n", "kind": "x\n"})
	w := o.files()
	c := checkout(t, w, api)
	before := inodes(t, c.Dir)
	old, err := os.Open(c.Dir + "/README.md") // Keeps its inode from being used again.
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	write(t, c.Dir+"/new.txt", "x\n")
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "work")
	work := testGit(t, c.Dir, "rev-parse", "HEAD")

	head := o.commit("main", map[string]string{
		"README.md": "two\n", "gone/file": "", "kind": "", "kind/now/directory": "y\n",
	})
	next := checkout(t, w, api)
	if next.Head != head || !next.Fresh || testGit(t, next.Dir, "status", "--porcelain") != "" {
		t.Errorf("got %+v, want a clean clone at %s", next, head)
	}
	after := inodes(t, c.Dir)
	if after["steady"] != before["steady"] || after["README.md"] == before["README.md"] {
		t.Errorf("before %v, after %v", before, after)
	}
	want := map[string]string{"README.md": "two\n", "steady": "x\n", "kind/now/directory": "y\n"}
	if diff := cmp.Diff(want, workTree(t, c.Dir)); diff != "" {
		t.Errorf("work tree (-want +got):\n%s", diff)
	}
	if exists(c.Dir + "/gone") {
		t.Error("an empty directory is left")
	}
	testGit(t, c.Dir, "fsck", "--strict")
	if _, err := tryGit(t, c.Dir, "cat-file", "-e", work); err == nil {
		t.Error("the last run's commit is still there")
	}
}

// Nothing that an agent does to the files of its clone, with or without git, is in the next clone.
func TestNothingIsInherited(t *testing.T) {
	t.Parallel()
	spoils := map[string]func(t *testing.T, dir, outside string){
		"times set back": func(t *testing.T, dir, _ string) {
			info, err := os.Stat(dir + "/sub/a")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+"/sub/a", []byte("B\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(dir+"/sub/a", info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"directories swapped": func(t *testing.T, dir, _ string) {
			for _, move := range [][2]string{{"sub", "x"}, {"other", "sub"}, {"x", "other"}} {
				if err := os.Rename(dir+"/"+move[0], dir+"/"+move[1]); err != nil {
					t.Fatal(err)
				}
			}
		},
		"index that lies": func(t *testing.T, dir, _ string) {
			write(t, dir+"/sub/a", "B\n")
			testGit(t, dir, "update-index", "--assume-unchanged", "sub/a", "sub/b")
			testGit(t, dir, "update-index", "--skip-worktree", "other/a")
			write(t, dir+"/other/a", "B\n")
		},
		"attributes":         func(t *testing.T, dir, _ string) { attributes(t, dir+"/.gitattributes") },
		"own attributes":     func(t *testing.T, dir, _ string) { attributes(t, dir+"/.git/info/attributes") },
		"attributes tracked": func(t *testing.T, dir, _ string) { attributes(t, dir+"/attr/.gitattributes") },
		"attributes behind a link": func(t *testing.T, dir, outside string) {
			attributes(t, outside+"/.gitattributes")
			write(t, dir+"/sub", "-> "+outside)
		},
		"configuration": func(t *testing.T, dir, _ string) {
			testGit(t, dir, "config", "core.autocrlf", "true")
			testGit(t, dir, "config", "core.sparseCheckout", "true")
			write(t, dir+"/.git/info/sparse-checkout", "/README.md\n")
		},
		"ignored": func(t *testing.T, dir, _ string) {
			write(t, dir+"/.gitignore", "*\n")
			write(t, dir+"/.git/info/exclude", "*\n")
			write(t, dir+"/secret", "x\n")
			write(t, dir+"/sub/deep/secret", "x\n")
		},
		"other repository": func(t *testing.T, dir, _ string) { testGit(t, dir, "init", "--quiet", "sub/nested") },
		"link outside":     link("sub", "."),
		"file is a link":   link("sub/a", "precious"),
		"pipe":             func(t *testing.T, dir, _ string) { fifo(t, dir+"/pipe") },
		"pipe for a file":  func(t *testing.T, dir, _ string) { fifo(t, dir+"/sub/a") },
		"pipe git reads": func(t *testing.T, dir, _ string) {
			for _, name := range []string{".gitignore", ".gitattributes", ".gitmodules", "sub/.gitignore"} {
				fifo(t, dir+"/"+name)
			}
		},
		"directory for a file": func(t *testing.T, dir, _ string) {
			write(t, dir+"/README.md", "")
			write(t, dir+"/README.md/x", "x\n")
		},
		"read only": func(t *testing.T, dir, _ string) {
			write(t, dir+"/sub/cache/x", "x\n")
			for _, name := range []string{"sub/cache", "sub"} {
				if err := os.Chmod(filepath.Join(dir, name), 0o500); err != nil {
					t.Fatal(err)
				}
			}
		},
		"no directory":  func(t *testing.T, dir, _ string) { write(t, dir, "x") },
		"another one":   link("", "."),
		"no repository": func(t *testing.T, dir, _ string) { write(t, dir+"/.git", "") },
		"a link to one": link(".git", ".git"),
	}
	o := newOrigin(t)
	want := map[string]string{
		"sub/a": "A\n", "sub/b": "two\nlines\n", "other/a": "C\n", "attr/.gitattributes": "# none\n", "README.md": "one\n",
	}
	o.commit("main", want)
	w, places := o.files(), map[string]string{} // outside of the clones
	for name, spoil := range spoils {
		outside := t.TempDir()
		testGit(t, outside, "init", "--quiet")
		write(t, outside+"/precious", "precious\n")
		spoil(t, checkout(t, w, Want{Thread: name, Repo: api.Repo}).Dir, outside)
		places[name] = outside
	}
	want["attr/text"] = "one\ntwo\n" // written where attributes could apply
	want["sub/text"] = "one\ntwo\n"
	o.commit("main", want)
	for name, outside := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := snapshot(t, outside)
			next := checkout(t, w, Want{Thread: name, Repo: api.Repo})
			if diff := cmp.Diff(want, workTree(t, next.Dir)); diff != "" {
				t.Errorf("work tree (-want +got):\n%s", diff)
			}
			if out := testGit(t, next.Dir, "status", "--porcelain", "--ignored"); out != "" {
				t.Errorf("status: %s", out)
			}
			if diff := cmp.Diff(before, snapshot(t, outside)); diff != "" {
				t.Errorf("outside changed:\n%s", diff)
			}
		})
	}
}

// attributes makes git write other bytes than a commit has.
func attributes(t *testing.T, name string) {
	t.Helper()
	write(t, name, "* text eol=crlf\n")
}

// The remembered index has the time of the first: git reads what was written in that very moment, as it might have
// changed since.
func TestRememberedIndexKeepsItsTime(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := w.mirror(api.Repo).clone(checkout(t, w, api).Dir)
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(c.dir+"/.git/index", at, at); err != nil {
		t.Fatal(err)
	}
	if err := c.remember(); err != nil {
		t.Fatal(err)
	}
	ends := make(chan struct{})
	go func() {
		defer close(ends)
		for range 200 {
			if err := c.remember(); err != nil {
				t.Error(err)
			}
		}
	}()
	for over := false; !over && !t.Failed(); { // at no moment it has another
		select {
		case <-ends:
			over = true
		default:
		}
		if info, err := os.Stat(c.index); err != nil || !info.ModTime().Equal(at) {
			t.Errorf("%v, %v", info, err)
		}
	}
	<-ends
}

// Files that cannot be moved should be written again completely.
func TestCloneWithoutInheritance(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(c clone) error{
		"no index":      func(c clone) error { return os.Remove(c.index) },
		"broken index":  func(c clone) error { return os.WriteFile(c.index, []byte("x"), 0o600) },
		"no directory":  func(c clone) error { return os.RemoveAll(c.dir) },
		"foreign files": func(c clone) error { return os.Rename(c.dir, c.dir+"2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			o.commit("main", map[string]string{"a": strings.Repeat("x", 100), "b": "-> a"})
			w := o.files()
			c := w.mirror(api.Repo).clone(checkout(t, w, api).Dir)
			want := workTree(t, c.dir)
			if err := spoil(c); err != nil {
				t.Fatal(err)
			}
			again := checkout(t, w, api)
			if diff := cmp.Diff(want, workTree(t, again.Dir)); diff != "" {
				t.Errorf("work tree (-want +got):\n%s", diff)
			}
			if left := leftovers(t, c.dir); len(left) > 0 {
				t.Errorf("beside the clone: %v", left)
			}
		})
	}
}
