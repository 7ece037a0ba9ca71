package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const shownLimit = 1 << 20

// changed compares a clone in both ways, which must agree, and returns the files by name.
func changed(t *testing.T, w *Workspace, c Clone) (files map[string]FileChange, left []string) {
	t.Helper()
	live, err := w.Changes(t.Context(), c, Comparing{Live: true, Limit: shownLimit})
	if err != nil {
		t.Fatal(err)
	}
	found, err := w.Changes(t.Context(), c, Comparing{Limit: shownLimit})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live, found, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a live clone has other changes:\n%s", diff)
	}
	files = map[string]FileChange{}
	for _, f := range found.Files {
		files[f.Name] = f
	}
	return files, found.Left
}

func TestChangesAreWhatWouldBePublished(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		".gitignore": "ignored\n", "gone.txt": "gone\n", "old.txt": strings.Repeat("a line\n", 9), "link": "target\n",
		"same.txt": "same\n",
	})
	w := o.files()
	c := checkout(t, w, api)
	if files, left := changed(t, w, c); len(files)+len(left) > 0 {
		t.Errorf("without changes: %v, left %v", files, left)
	}

	odd := "a \"b\"\n\tçé😀\u202etxt"
	write(t, c.Dir+"/README.md", "two\nthree\n")
	testGit(t, c.Dir, "commit", "--quiet", "--all", "--message", "work") // committed
	write(t, c.Dir+"/staged.txt", "staged\n")
	testGit(t, c.Dir, "add", "staged.txt")
	testGit(t, c.Dir, "mv", "old.txt", "dir.txt")
	for name, content := range map[string]string{
		"new/" + odd: "new\n", "ignored": "not published\n", "gone.txt": "", "link": "-> /etc/passwd",
		"binary": "\x00\x01", "no-end.txt": "no end",
		"code.diff": "--- a/x\n+++ b/x\ndiff --git a/x b/x\n@@ -1 +1 @@\n", "<script>.html": "</script>\r\n\x1b[31m",
	} {
		write(t, c.Dir+"/"+name, content)
	}
	files, left := changed(t, w, c)
	var got []string
	for name, f := range files {
		got = append(got, fmt.Sprintf("%s %q +%d -%d %v %s", f.Kind, name, f.Added, f.Removed, f.Binary, f.From))
		if !strings.HasPrefix(f.Patch, "diff --git ") || f.Cut ||
			strings.Count(f.Patch, "\ndiff --git ") > 0 && f.Kind != "T" {
			t.Errorf("patch of %q, cut %v:\n%s", name, f.Cut, f.Patch)
		}
	}
	want := []string{
		`M "README.md" +2 -1 false `, `A "staged.txt" +1 -0 false `, `R "dir.txt" +0 -0 false old.txt`,
		fmt.Sprintf("A %q +1 -0 false ", "new/"+odd), `D "gone.txt" +0 -1 false `, `T "link" +1 -1 false `,
		`A "binary" +0 -0 true `,
		`A "no-end.txt" +1 -0 false `, `A "code.diff" +4 -0 false `, `A "<script>.html" +2 -0 false `,
	}
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" || len(left) > 0 {
		t.Errorf("left %v, files:\n%s", left, diff)
	}
	if p := files["link"].Patch; !strings.Contains(p, "\n-target\n") || !strings.Contains(p, "\n+/etc/passwd\n") ||
		strings.Contains(p, "root:") {
		t.Errorf("patch of a link:\n%s", p)
	}
	if p := files["code.diff"].Patch; !strings.Contains(p, "\n+diff --git a/x b/x\n") {
		t.Errorf("patch of a patch:\n%s", p)
	}
}

// Commits of the base are no changes of the agent's, wherever they came from.
func TestChangesLeaveOutMergedCommits(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	keep := api
	keep.Keep = true
	c := checkout(t, w, keep)
	write(t, c.Dir+"/mine.txt", "mine\n")
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "work")
	o.commit("main", map[string]string{"theirs.txt": "theirs\n"})
	c = checkout(t, w, keep)
	for _, how := range [][]string{{"merge", "--quiet", "--no-edit"}, {"rebase", "--quiet"}} {
		testGit(t, c.Dir, append(how, "origin/main")...)
		if files, _ := changed(t, w, c); len(files) != 1 || files["mine.txt"].Added != 1 {
			t.Errorf("after %s: %v", how[0], files)
		}
		testGit(t, c.Dir, "reset", "--quiet", "--hard", "ORIG_HEAD")
	}
}

func TestChangesOfLargeFiles(t *testing.T) {
	t.Parallel()
	w := newOrigin(t).files()
	c := checkout(t, w, api)
	write(t, c.Dir+"/a-lines.txt", strings.Repeat("0123456789\n", 50_000)) // half of the limit
	write(t, c.Dir+"/b-million.txt", strings.Repeat("1\n", 1_000_000))
	write(t, c.Dir+"/c-lines.txt", strings.Repeat("0123456789\n", 50_000))
	write(t, c.Dir+"/d-last.txt", "last\n")
	write(t, c.Dir+"/e-huge.txt", strings.Repeat("0123456789\n", 1<<20))
	found, err := w.Changes(t.Context(), c, Comparing{Limit: shownLimit})
	// The last is more than is ever published, and the second more than is read where an agent may run.
	if diff := cmp.Diff([]string{"b-million.txt", "e-huge.txt"}, found.Left); err != nil ||
		len(found.Files) != 3 || diff != "" {
		t.Fatalf("%d files, left:\n%s%v", len(found.Files), diff, err)
	}
	size := 0
	for _, f := range found.Files {
		size += len(f.Patch)
		if cut := f.Name > "a-lines.txt"; f.Cut != cut || f.Added == 0 {
			t.Errorf("%s: cut %v, %d lines added", f.Name, f.Cut, f.Added)
		}
	}
	if size > shownLimit || found.Files[1].Patch == "" || !strings.HasSuffix(found.Files[1].Patch, "\n") ||
		found.Files[2].Patch != "" {
		t.Errorf("%d bytes", size)
	}
}

// What is too large for a checkpoint can be compared, and the other way round.
func TestChangesOfALiveClone(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{"old.txt": strings.Repeat("a line\n", 60_000)})
	w := o.files()
	c := checkout(t, w, api)
	large := make([]byte, bundleLimit+1<<20)
	if _, err := rand.Read(large); err != nil {
		t.Fatal(err)
	}
	write(t, c.Dir+"/large.bin", string(large))
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "work")
	testGit(t, c.Dir, "mv", "old.txt", "new.txt")
	write(t, c.Dir+"/README.md", "two\n")
	if b, err := w.Snapshot(t.Context(), c, bundleLimit); err == nil || b.Data != nil {
		t.Errorf("a bundle of %d bytes, error %v", len(b.Data), err)
	}
	files, left := changed(t, w, c)
	if len(files) != 3 || !files["large.bin"].Binary || files["new.txt"].From != "old.txt" ||
		files["README.md"].Added != 1 || len(left) > 0 {
		t.Errorf("left %v, %d files: %+v", left, len(files), files["README.md"])
	}
}

func TestChangesOfADestroyedClone(t *testing.T) {
	t.Parallel()
	w := newOrigin(t).files()
	c := checkout(t, w, api)
	testGit(t, c.Dir, "-c", "protocol.file.allow=always", "init", "--quiet", "nested")
	write(t, c.Dir+"/nested/file.txt", "new\n")
	if _, left := changed(t, w, c); len(left) != 1 || left[0] != "nested/" {
		t.Errorf("another repository inside: left %v", left)
	}
	if err := os.RemoveAll(c.Dir + "/.git"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Changes(t.Context(), c, Comparing{Limit: shownLimit}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestReviewedIsWhatHeadChanged(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("topic", map[string]string{"new.txt": "new\n", ".gitattributes": "* -diff\n"})
	o.commit("main", map[string]string{"README.md": "not of this branch\n"})
	w := o.files()
	c := checkout(t, w, Want{Thread: "t", Repo: "acme/api", Ref: "topic"})
	found, err := w.Changes(t.Context(), c, Comparing{Reviewed: true, Limit: shownLimit})
	if err != nil || len(found.Files) != 2 || !strings.Contains(found.Files[1].Patch, "\n+new\n") ||
		found.Base != c.BaseSHA {
		t.Errorf("%+v: %v", found, err)
	}
	c.Head = "--output=x"
	if _, err := w.Changes(t.Context(), c, Comparing{Reviewed: true, Limit: shownLimit}); err == nil {
		t.Error("took an option for a commit")
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
