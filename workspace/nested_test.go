package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A repository inside the clone is a separate one even if the index knows it, with commits and files that exist only
// there.
func TestRepositoryInTheIndexCannotBeSaved(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	nested := filepath.Join(c.Dir, "nested")
	testGit(t, c.Dir, "init", "--quiet", "nested")
	write(t, nested+"/x", "x\n")
	testGit(t, nested, "add", "--all")
	testGit(t, nested, "commit", "--quiet", "--message", "x")
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "nested")
	if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); !errors.Is(err, ErrUnsaved) || len(names) != 0 {
		t.Errorf("saved %v, %v", names, err)
	}
	write(t, nested, "")
	if err := os.Mkdir(nested, 0o755); err != nil {
		t.Fatal(err)
	}
	if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); err != nil || len(names) != 2 {
		t.Errorf("of an empty one saved %v, %v", names, err)
	}
}

// So is one that git moved into the clone's git directory, and a second work tree.
func TestWorkElsewhereInTheGitDirectoryCannotBeSaved(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T, dir string){
		"submodule": func(t *testing.T, dir string) {
			testGit(t, dir, "init", "--quiet", ".git/modules/lib")
		},
		"work tree": func(t *testing.T, dir string) {
			write(t, dir+"/.git/info/exclude", "trees\n")
			testGit(t, dir, "worktree", "add", "--quiet", "--detach", "trees/one")
			write(t, dir+"/trees/one/new.txt", "x\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			w := o.files()
			plant(t, checkout(t, w, api).Dir)
			if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); !errors.Is(err, ErrUnsaved) ||
				len(names) != 0 {
				t.Errorf("saved %v, %v", names, err)
			}
		})
	}
}
