package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// A mirror knows of our commits what the remote lacks, and of that not what was published long ago. The date of a
// commit does not count.
func TestTendDropsPublished(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	mirror := w.mirror(api.Repo).dir
	refs := func() map[string]string { // the names of our commits, by the branch that each was published for
		t.Helper()
		names := map[string]string{}
		for ref := range strings.FieldsSeq(testGit(t, mirror, "for-each-ref", "--format=%(refname)", publishedRefs)) {
			names[testGit(t, mirror, "show", ref+":new")] = ref
		}
		return names
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
		"errand/long-ago": func(dir string) error {
			c := Clone{Repo: api.Repo, Dir: dir, Base: "main"}
			_, err := w.Publish(t.Context(), c, *refuse("errand/long-ago"))
			return err
		},
		"errand/old-commit": func(dir string) error {
			testGit(t, dir, "add", "--all")
			own := &origin{t: t, bare: dir}
			head := testGit(t, dir, "rev-parse", "HEAD")
			testGit(t, dir, "reset", "--quiet", "--soft", own.object("commit", "tree "+testGit(t, dir, "write-tree")+
				"\nparent "+head+"\n"+someAuthor+someCommitter+"\nlong ago\n"))
			c := Clone{Repo: api.Repo, Dir: dir, Base: "main"}
			_, err := w.Publish(t.Context(), c, *refuse("errand/old-commit"))
			return err
		},
	} {
		c := checkout(t, w, Want{Thread: branch, Repo: api.Repo})
		write(t, filepath.Join(c.Dir, "new"), branch)
		if err := work(c.Dir); err != nil && !errors.Is(err, stopped) {
			t.Fatal(err)
		}
	}
	before := refs()
	if len(before) != 4 {
		t.Fatalf("before: %v", before)
	}
	ref := before["errand/long-ago"]
	commit := testGit(t, mirror, "rev-parse", ref)
	testGit(t, mirror, "update-ref", publishedRefs+"1700000000-"+commit, commit)
	testGit(t, mirror, "update-ref", "-d", ref)

	checkout(t, w, api) // the mirror learns of the pushed branch
	if err := w.Tend(t.Context(), api.Repo); err != nil {
		t.Fatal(err)
	}
	delete(before, "errand/pushed")
	delete(before, "errand/long-ago")
	if got := refs(); !maps.Equal(got, before) {
		t.Errorf("left: %v, want %v", got, before)
	}
}

// What a killed git was writing is removed, and nothing else.
func TestTendRemovesUnfinished(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	objects := filepath.Join(w.mirror(api.Repo).dir, "objects")
	remains := []string{
		filepath.Join(objects, "pack", "tmp_pack_a1B2c3"), filepath.Join(objects, "17", "tmp_obj_a1B2c3"),
	}
	for _, name := range remains {
		write(t, name, "half")
	}
	if err := w.Tend(t.Context(), api.Repo); err != nil {
		t.Fatal(err)
	}
	for _, name := range remains {
		if exists(name) {
			t.Errorf("%s is left", name)
		}
	}
	testGit(t, c.Dir, "fsck")
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
