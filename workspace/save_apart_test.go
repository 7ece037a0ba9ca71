package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// Saved work does not overwrite other work of the thread at the same commit.
func TestSavedWorkIsKeptApart(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w, dir := o.files(), t.TempDir()
	branch := func(name string) {
		t.Helper()
		c := checkout(t, w, api)
		testGit(t, c.Dir, "checkout", "--quiet", "-b", name)
		testGit(t, c.Dir, "commit", "--quiet", "--allow-empty", "--message", name)
		testGit(t, c.Dir, "checkout", "--quiet", "main")
	}
	save := func(want int) {
		t.Helper()
		names, err := w.Save(t.Context(), api.Thread, dir)
		if err != nil || len(names) != want {
			t.Fatalf("saved %v, %v, want %d", names, err, want)
		}
	}
	branch("first")
	save(2)
	save(2)
	if all := listed(t, dir); len(all) != 2 {
		t.Errorf("the same work is there twice: %v", all)
	}
	branch("second")
	save(2)
	branch("third")
	aside := filepath.Join(w.threadDir(api.Thread), "repos", "acme", ".api~broken")
	if err := os.Rename(filepath.Join(filepath.Dir(aside), "api"), aside); err != nil {
		t.Fatal(err)
	}
	branch("fourth")
	save(4)

	again := t.TempDir()
	testGit(t, again, "clone", "--quiet", o.bare, ".")
	for _, name := range listed(t, dir) {
		if filepath.Ext(name) == bundleExt {
			testGit(t, again, "fetch", "--quiet", filepath.Join(dir, name), "refs/heads/*:refs/heads/saved/*",
				"^refs/heads/main")
		}
	}
	for _, name := range []string{"first", "second", "third", "fourth"} {
		if _, err := tryGit(t, again, "rev-parse", "--verify", "refs/heads/saved/"+name); err != nil {
			t.Errorf("%s is lost", name)
		}
	}
}
