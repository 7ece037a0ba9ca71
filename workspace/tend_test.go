package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Joined packs have everything that a clone may borrow, also what no ref leads to any more.
func TestTendJoinsPacks(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	lost := o.commit("lost", map[string]string{"x": "lost\n"})
	want := api
	want.Ref = "lost"
	c := checkout(t, w, want)
	o.push(":refs/heads/lost")
	m := w.mirror(api.Repo)
	packs := func() int {
		found, err := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.pack"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for i := range maxPacks + 1 {
		o.commit("main", map[string]string{"x": fmt.Sprint(i)})
		if _, err := m.update(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	many := packs()
	if err := w.Tend(t.Context(), api.Repo); err != nil {
		t.Fatal(err)
	}
	if few := packs(); many <= maxPacks || few > maxPacks/2 {
		t.Errorf("%d packs became %d", many, few)
	}
	testGit(t, c.Dir, "cat-file", "-e", lost+":x")
	testGit(t, c.Dir, "fsck")
	if c := checkout(t, w, api); c.Head != testGit(t, o.work, "rev-parse", "main") {
		t.Errorf("after that: %+v", c)
	}
}

// A mirror knows of our commits what the remote lacks, and of that not what is old.
func TestTendDropsPublished(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	refs := func() []string {
		t.Helper()
		return strings.Fields(testGit(t, w.mirror(api.Repo).dir, "for-each-ref", "--format=%(refname)", publishedRefs))
	}
	stopped := errors.New("stopped")
	refuse := func(branch string) *Publication {
		p := publication()
		p.Branch = branch
		p.Permit = func(context.Context, string) error { return stopped }
		return p
	}
	for branch, work := range map[string]func(dir string) error{
		"errand/pushed": func(dir string) error {
			c := Clone{Repo: api.Repo, Dir: dir, Base: "main"}
			p := publication()
			p.Branch = "errand/pushed"
			_, err := w.Publish(t.Context(), c, *p)
			return err
		},
		"errand/kept": func(dir string) error {
			c := Clone{Repo: api.Repo, Dir: dir, Base: "main"}
			_, err := w.Publish(t.Context(), c, *refuse("errand/kept"))
			return err
		},
		"errand/old": func(dir string) error {
			testGit(t, dir, "add", "--all")
			own := &origin{t: t, bare: dir}
			head := testGit(t, dir, "rev-parse", "HEAD")
			testGit(t, dir, "reset", "--quiet", "--soft", own.object("commit", "tree "+testGit(t, dir, "write-tree")+
				"\nparent "+head+"\n"+someAuthor+someCommitter+"\nlong ago\n"))
			c := Clone{Repo: api.Repo, Dir: dir, Base: "main"}
			_, err := w.Publish(t.Context(), c, *refuse("errand/old"))
			return err
		},
	} {
		c := checkout(t, w, Want{Thread: branch, Repo: api.Repo})
		write(t, filepath.Join(c.Dir, "new"), branch)
		if err := work(c.Dir); err != nil && !errors.Is(err, stopped) {
			t.Fatal(err)
		}
	}
	if got := refs(); len(got) != 3 {
		t.Fatalf("before: %v", got)
	}
	checkout(t, w, api) // the mirror learns of the pushed branch
	if err := w.Tend(t.Context(), api.Repo); err != nil {
		t.Fatal(err)
	}
	if got := refs(); len(got) != 1 || got[0] != publishedRefs+"errand/kept" {
		t.Errorf("left: %v", got)
	}
}

// A mirror that is being updated is left alone.
func TestTendDoesNotWait(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	checkout(t, w, api)
	held, err := lock(t.Context(), w.mirror(api.Repo).beside("lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock(held)
	if err := w.Tend(t.Context(), api.Repo); err != nil {
		t.Error(err)
	}
}
