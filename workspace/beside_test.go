package workspace

import "testing"

// A repository may have the name of a file that errand keeps beside clones. Neither affects the other.
func TestRepositoriesNamedLikeLeftovers(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	for _, suffix := range []string{"old", "broken", "tmp", "snap", "index"} {
		repo := "acme/.api." + suffix
		testGit(t, o.root, "clone", "--quiet", "--bare", o.bare, repo+".git")
		c := checkout(t, w, Want{Thread: api.Thread, Repo: repo})
		write(t, c.Dir+"/new.txt", "x\n")
	}
	for range 2 {
		checkout(t, w, api)
	}
	names, err := w.Save(t.Context(), api.Thread, t.TempDir())
	if err != nil || len(names) != 5*2 {
		t.Errorf("saved %v, %v", names, err)
	}
}
