package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// mirrors returns the only mirror, that of acme/api.
func mirrors(t *testing.T, w *Workspace) Mirror {
	t.Helper()
	list, err := w.Mirrors(t.Context())
	if err != nil || len(list) != 1 || list[0].Repo != api.Repo || list[0].Size == 0 ||
		time.Since(list[0].Used) > time.Hour {
		t.Fatalf("mirrors %+v, %v", list, err)
	}
	return list[0]
}

// stays checks that a mirror is kept.
func stays(t *testing.T, w *Workspace, m Mirror, why string) {
	t.Helper()
	if gone, err := w.DiscardMirror(t.Context(), m); gone || err != nil || !exists(w.mirror(m.Repo).dir) {
		t.Errorf("%s: discarded %t, %v", why, gone, err)
	}
}

// A mirror stays as long as a clone needs it.
func TestMirrorGoesAfterItsClones(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	if list, err := w.Mirrors(t.Context()); len(list) > 0 || err != nil {
		t.Errorf("want no mirrors: %v, %v", list, err)
	}
	other := checkout(t, w, Want{Thread: "other", Repo: "acme/api"})
	c := checkout(t, w, api)
	for _, thread := range []string{api.Thread, "other"} {
		if err := w.name(thread, true); err != nil {
			t.Fatal(err)
		}
	}
	stays(t, w, mirrors(t, w), "two clones")
	if gone, err := w.Discard(t.Context(), threads(t, w)["other"]); !gone || err != nil || exists(other.Dir) {
		t.Fatal(gone, err)
	}
	stays(t, w, mirrors(t, w), "one clone")
	aside := filepath.Join(filepath.Dir(c.Dir), ".api~broken")
	if err := os.Rename(c.Dir, aside); err != nil {
		t.Fatal(err)
	}
	stays(t, w, mirrors(t, w), "one that is set aside")
	if err := os.RemoveAll(aside); err != nil {
		t.Fatal(err)
	}
	used := mirrors(t, w)
	used.Used = used.Used.Add(-time.Second)
	stays(t, w, used, "used meanwhile")

	write(t, w.mirror(api.Repo).beside("broken")+"/x", "set aside long ago")
	if gone, err := w.DiscardMirror(t.Context(), mirrors(t, w)); !gone || err != nil {
		t.Errorf("discard: %t, %v", gone, err)
	}
	if left, err := os.ReadDir(filepath.Join(w.cfg.Dir, "mirrors", "acme")); err != nil ||
		slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() != "api.lock" && e.Name() != "api.use" }) {
		t.Errorf("left %v, %v", left, err)
	}
	if err := w.Empty(); err != nil {
		t.Fatal(err)
	}
	if again := checkout(t, w, api); workTree(t, again.Dir)["README.md"] != "one\n" {
		t.Error("there is no new mirror")
	}
}

// A process that was killed while it removed a mirror leaves a directory that the next one should find.
func TestHalfDiscardedMirrorGoes(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	m := w.mirror(api.Repo)
	for done := range mirrorExts {
		for _, name := range []string{"broken", "tmp"} {
			write(t, m.beside(name)+"/x", "12345")
		}
		if err := os.RemoveAll(checkout(t, w, api).Dir); err != nil {
			t.Fatal(err)
		}
		write(t, m.beside("broken")+"/x", "12345")
		for _, ext := range mirrorExts[:done] {
			if err := dirtree.Remove(m.beside(ext[1:])); err != nil {
				t.Fatal(err)
			}
		}
		list, err := w.Mirrors(t.Context())
		if err != nil || len(list) != 1 || list[0].Repo != api.Repo {
			t.Fatalf("after %d steps there are %+v, %v", done, list, err)
		}
		if gone, err := w.DiscardMirror(t.Context(), list[0]); !gone || err != nil {
			t.Errorf("after %d steps: discarded %t, %v", done, gone, err)
		}
		if left, err := w.Mirrors(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("after %d steps there are still %+v, %v", done, left, err)
		}
	}
	// Directories that were set aside without a mirror should be removed, too.
	write(t, m.beside("broken")+"/x", "12345")
	list, err := w.Mirrors(t.Context())
	if err != nil || len(list) != 1 || list[0].Size != 5 {
		t.Fatalf("there are %+v, %v", list, err)
	}
	if gone, err := w.DiscardMirror(t.Context(), list[0]); !gone || err != nil || exists(m.beside("broken")) {
		t.Errorf("discarded %t, %v", gone, err)
	}
}

// Commits that were fetched into the mirror and not pushed exist only there when the clone is gone.
func TestMirrorWithUnpushedCommitsStays(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	write(t, c.Dir+"/work.txt", "work\n")
	write(t, o.bare+"/hooks/pre-receive", "#!/bin/sh\nexit 1\n")
	if _, err := w.Publish(t.Context(), c, *publication()); err == nil {
		t.Fatal("it was pushed")
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		t.Fatal(err)
	}
	stays(t, w, mirrors(t, w), "not pushed")
	mirror := w.mirror(api.Repo).dir
	refused := testGit(t, mirror, "for-each-ref", "--format=%(refname)", publishedRefs)
	testGit(t, mirror, "update-ref", "-d", refused) // as if it were long ago: the next attempt makes another commit
	c = checkout(t, w, api)
	write(t, o.bare+"/hooks/pre-receive", "")
	write(t, c.Dir+"/work.txt", "work\n")
	published(t, w, c, publication())
	if err := os.RemoveAll(c.Dir); err != nil {
		t.Fatal(err)
	}
	checkout(t, w, Want{Thread: "fetches", Repo: api.Repo})
	if err := os.RemoveAll(w.threadDir("fetches")); err != nil {
		t.Fatal(err)
	}
	if gone, err := w.DiscardMirror(t.Context(), mirrors(t, w)); !gone || err != nil {
		t.Errorf("discard: %t, %v", gone, err)
	}
}

// The originals of signed commits keep no mirror, and do not pile up, whatever the date of a commit.
func TestMirrorWithOriginalsGoes(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.signs(newKey(t, "-t", "ed25519"))
	c := checkout(t, w, api)
	dir := w.mirror(api.Repo).dir
	for i, date := range []string{
		"2090-01-01T00:00:00Z", "2020-01-01T00:00:00Z", time.Now().UTC().Format(time.RFC3339),
	} {
		write(t, c.Dir+"/work.txt", strings.Repeat("work\n", i+1))
		testGit(t, c.Dir, "add", "--all")
		testGit(t, c.Dir, "-c", "alias.at=!GIT_COMMITTER_DATE="+date+" git commit --quiet --message work", "at")
		published(t, w, c, signedPublication())
		if i == 0 { // long ago
			ref := testGit(t, dir, "for-each-ref", "--format=%(refname)", originals)
			_, commit, _ := strings.Cut(ref, "-")
			testGit(t, dir, "update-ref", originals+"1700000000-"+commit, commit)
			testGit(t, dir, "update-ref", "-d", ref)
		}
	}
	if err := w.Tend(t.Context(), api.Repo); err != nil {
		t.Fatal(err)
	}
	if got := testGit(t, dir, "for-each-ref", originals); strings.Count(got, "commit") != 2 {
		t.Errorf("originals:\n%s", got)
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		t.Fatal(err)
	}
	checkout(t, w, Want{Thread: "fetches", Repo: api.Repo})
	if err := os.RemoveAll(w.threadDir("fetches")); err != nil {
		t.Fatal(err)
	}
	if gone, err := w.DiscardMirror(t.Context(), mirrors(t, w)); !gone || err != nil {
		t.Errorf("discard: %t, %v", gone, err)
	}
}

// The mirror should stay until the clone is complete.
func TestMirrorStaysWhileItIsCloned(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	if err := dirtree.Remove(filepath.Dir(checkout(t, w, api).Dir)); err != nil {
		t.Fatal(err)
	}
	// The clone finds a damage that the fetch does not see. So the remote is asked once more, after a first attempt.
	loseBlob(t, w.mirror(api.Repo).dir)
	url, asked := w.cfg.URL, 0
	w.cfg.URL = func(repo string) string {
		asked++
		stays(t, w, mirrors(t, w), "being cloned")
		return url(repo)
	}
	c := checkout(t, w, api)
	if asked < 2 {
		t.Errorf("the remote was asked %d times", asked)
	}
	if err := os.RemoveAll(filepath.Dir(c.Dir)); err != nil {
		t.Fatal(err)
	}
	if gone, err := w.DiscardMirror(t.Context(), mirrors(t, w)); !gone || err != nil {
		t.Errorf("discard: %t, %v", gone, err)
	}
}
