package workspace

import (
	"maps"
	"testing"
)

// Changes that git is set to ignore still count as work, but not the files that we put in place of the checkout's
// configuration.
func TestHiddenChangesAreSaved(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{".mcp.json": "trusted\n", "settings.go": "one\n"})
	o.commit("topic", map[string]string{".mcp.json": "hostile\n"})
	w := o.files()
	want := api
	want.Ref, want.TrustedConfig = "topic", true
	c := checkout(t, w, want)
	if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); len(names) != 0 || err != nil {
		t.Errorf("saved %v, %v of errand's own files", names, err)
	}
	testGit(t, c.Dir, "update-index", "--assume-unchanged", "README.md")
	testGit(t, c.Dir, "update-index", "--skip-worktree", "settings.go")
	write(t, c.Dir+"/README.md", "changed\n")
	write(t, c.Dir+"/settings.go", "another\n") // another size: git misses a change of the same size at the same time
	for name, want := range map[string]string{"README.md": "changed\n", "settings.go": "another\n"} {
		if got := workTree(t, o.saved(w, api.Thread))[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// sparse returns a clone where an agent has left out left-out.go.
func sparse(t *testing.T) (*origin, *Workspace, Clone) {
	t.Helper()
	o := newOrigin(t)
	o.commit("main", map[string]string{"left-out.go": "x\n"})
	w := o.files()
	c := checkout(t, w, api)
	testGit(t, c.Dir, "sparse-checkout", "set", "--no-cone", "/*", "!/left-out.go")
	if exists(c.Dir + "/left-out.go") {
		t.Fatal("it is there")
	}
	return o, w, c
}

// Files outside a sparse checkout were not removed.
func TestSparseCheckoutIsNoWork(t *testing.T) {
	t.Parallel()
	_, w, _ := sparse(t)
	if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); len(names) != 0 || err != nil {
		t.Errorf("saved %v, %v", names, err)
	}
}

// The clone has the published commit, and what its sparse checkout leaves out stays so. Otherwise the next publication
// would remove those files.
func TestSparseCheckoutStaysSo(t *testing.T) {
	t.Parallel()
	o, w, c := sparse(t)
	p := publication()
	for _, content := range []string{"two\n", "three\n"} {
		write(t, c.Dir+"/README.md", content)
		published(t, w, c, p)
		want := map[string]string{"README.md": content, "left-out.go": "x\n"}
		if files, _ := o.branch(ownBranch); !maps.Equal(files, want) {
			t.Errorf("published %q", files)
		}
		if out := testGit(t, c.Dir, "status", "--porcelain"); out != "" {
			t.Errorf("status: %s", out)
		}
	}
}
