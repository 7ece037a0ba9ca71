package workspace

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const bundleLimit = 8 << 20

func bundle(t *testing.T, w *Workspace, c Clone) Bundle {
	t.Helper()
	b, err := w.Snapshot(t.Context(), c, bundleLimit)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// carried is the bundle as read from a store.
func carried(t *testing.T, b Bundle) Bundle {
	t.Helper()
	meta, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var out Bundle
	if err := json.Unmarshal(meta, &out); err != nil {
		t.Fatal(err)
	}
	out.Data = bytes.Clone(b.Data)
	return out
}

// restored restores the bundle on an empty machine.
func (o *origin) restored(w *Workspace, b Bundle) Clone {
	o.t.Helper()
	c, err := w.Restore(o.t.Context(), api, carried(o.t, b))
	if err != nil {
		o.t.Fatal(err)
	}
	return c
}

// state is what git and a reader of files find in a clone.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := workTree(t, dir)
	for _, args := range []string{
		"status --porcelain=v2 --branch", "log --format=%H%x20%s --all --not --remotes", "for-each-ref refs/heads",
		"diff --cached", "diff", "ls-files --stage",
	} {
		all["git "+args] = testGit(t, dir, strings.Fields(args)...)
	}
	return all
}

// workIn leaves all that a run can leave.
func (o *origin) workIn(dir string) {
	t := o.t
	write(t, dir+"/README.md", "committed\n")
	testGit(t, dir, "checkout", "--quiet", "-b", "aside\u00a0")
	testGit(t, dir, "commit", "--quiet", "--all", "--message", "on the side")
	testGit(t, dir, "checkout", "--quiet", "main")
	write(t, dir+"/new.txt", "committed\n")
	testGit(t, dir, "add", "new.txt")
	testGit(t, dir, "commit", "--quiet", "--message", "more")
	write(t, dir+"/staged.txt", "staged\n")
	testGit(t, dir, "add", "staged.txt")
	write(t, dir+"/staged.txt", "and changed\n")
	write(t, dir+"/forced.log", "ignored, but staged\n")
	testGit(t, dir, "add", "--force", "forced.log")
	write(t, dir+"/README.md", "changed\n")
	write(t, dir+"/deep/er/untracked.txt", "untracked\n")
	write(t, dir+"/ab\"c\nd\\é", "odd name\n")
	write(t, dir+"/link", "-> /etc/hostname")
	write(t, dir+"/gone.txt", "")
	write(t, dir+"/old", "")
	write(t, dir+"/dir", "a file where a directory was\n")
	write(t, dir+"/turns", "")
	write(t, dir+"/turns/into/a.txt", "a directory where a file was\n")
	write(t, dir+"/was-link", "a file where a link was\n")
	write(t, dir+"/mixed.dos", "one\r\ntwo\nthree\r\n")
	write(t, dir+"/ends.dos", "a\nb\r\n") // no change to git
	write(t, dir+"/ignored.log", "ignored\n")
	if err := os.Chmod(dir+"/README.md", 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWorkGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		".gitignore": "*.log\n", "gone.txt": "x\n", "dir/file.txt": "x\n", ".gitattributes": "*.dos text eol=crlf\n",
		"other.dos": "a\nb\n", "ends.dos": "a\nb\n", "old/er/file.txt": "x\n", "turns": "x\n", "was-link": "-> /etc",
	})
	here, there := o.files(), o.files()
	c := checkout(t, here, api)
	o.workIn(c.Dir)
	before := state(t, c.Dir)
	b := bundle(t, here, c)
	if diff := cmp.Diff(before, state(t, c.Dir)); diff != "" {
		t.Errorf("the snapshot changed the clone:\n%s", diff)
	}
	if exists(filepath.Join(filepath.Dir(c.Dir), ".api~snap")) {
		t.Error("the snapshot left something behind")
	}
	again := o.restored(there, b)
	if again.Dir == c.Dir || again.Fresh || again.Head != testGit(t, c.Dir, "rev-parse", "HEAD") ||
		again.Base != "main" {
		t.Errorf("restored as %+v", again)
	}
	want := maps.Clone(before)
	delete(want, "ignored.log")
	if diff := cmp.Diff(want, state(t, again.Dir)); diff != "" {
		t.Errorf("not as it was (-want +got):\n%s", diff)
	}
	if exists(again.Dir + "/old") {
		t.Error("a directory that was removed is there")
	}
	if len(b.Missing) > 0 || len(b.Data) > 10<<10 {
		t.Errorf("missing %q, %d bytes", b.Missing, len(b.Data))
	}
	// Again: a bundle of the restored clone.
	third := o.files()
	if diff := cmp.Diff(want, state(t, o.restored(third, bundle(t, there, again)).Dir)); diff != "" {
		t.Errorf("not as it was at the second time (-want +got):\n%s", diff)
	}
}

// A bundle should not contain objects of the mirror, regardless of the repository's size.
func TestBundleIsThin(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	o.commit("main", map[string]string{"large.bin": string(noise)})
	here, there := o.files(), o.files()
	c := checkout(t, here, api)
	if b := bundle(t, here, c); len(b.Data) > 0 || b.Head != c.Head || b.Branch != "main" || b.Work != "" {
		t.Errorf("nothing was done: %+v", b)
	} else if again := o.restored(there, b); again.Head != c.Head ||
		testGit(t, again.Dir, "symbolic-ref", "HEAD") != "refs/heads/main" {
		t.Errorf("restored as %+v", again)
	}
	write(t, c.Dir+"/small.txt", "x\n")
	testGit(t, c.Dir, "checkout", "--quiet", "--detach")
	b := bundle(t, here, c)
	if len(b.Data) == 0 || len(b.Data) > 10<<10 {
		t.Errorf("%d bytes", len(b.Data))
	}
	again := o.restored(there, b)
	if _, err := tryGit(t, again.Dir, "symbolic-ref", "HEAD"); err == nil ||
		workTree(t, again.Dir)["small.txt"] != "x\n" {
		t.Errorf("HEAD is on a branch, or the file is not there: %v", workTree(t, again.Dir))
	}
}

// Git state that a bundle cannot contain is listed. The files are unchanged.
func TestConflictIsKeptAsFiles(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("other", map[string]string{"README.md": "theirs\n"})
	o.commit("main", map[string]string{"README.md": "ours\n"})
	here, there := o.files(), o.files()
	c := checkout(t, here, api)
	write(t, c.Dir+"/stashed.txt", "x\n")
	testGit(t, c.Dir, "stash", "--include-untracked", "--quiet")
	_, _ = tryGit(t, c.Dir, "merge", "origin/other")
	conflict := workTree(t, c.Dir)["README.md"]
	if !strings.Contains(conflict, "<<<<<<<") {
		t.Fatalf("no conflict: %q", conflict)
	}
	b := bundle(t, here, c)
	again := o.restored(there, b)
	if got := workTree(t, again.Dir)["README.md"]; got != conflict ||
		!slices.Equal(b.Missing, []string{"the merge in progress"}) {
		t.Errorf("README.md is %q, missing %q", got, b.Missing)
	}
	testGit(t, again.Dir, "checkout", "--quiet", "README.md")
	testGit(t, again.Dir, "stash", "pop", "--quiet")
	if got := workTree(t, again.Dir)["stashed.txt"]; got != "x\n" {
		t.Errorf("the stash has %q", got)
	}
}

// With an unusable index, what was staged is lost, not the files.
func TestBrokenIndex(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	here, there := o.files(), o.files()
	for name, spoil := range map[string]func(dir string){
		"garbage": func(dir string) { write(t, dir+"/.git/index", "garbage\n") },
		"none":    func(dir string) { write(t, dir+"/.git/index", "") },
		"half": func(dir string) { // without the part that the other part needs
			testGit(t, dir, "update-index", "--split-index")
			shared, _ := filepath.Glob(dir + "/.git/sharedindex.*")
			for _, name := range shared {
				write(t, name, "")
			}
		},
	} {
		c := checkout(t, here, api)
		write(t, c.Dir+"/README.md", "two\n")
		write(t, c.Dir+"/new.txt", "new\n")
		spoil(c.Dir)
		got := workTree(t, o.restored(there, bundle(t, here, c)).Dir)
		if diff := cmp.Diff(map[string]string{"README.md": "two\n", "new.txt": "new\n"}, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestTooLargeForABundle(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	here, there := o.files(), o.files()
	noise := func(n int) string {
		b := make([]byte, n)
		_, _ = rand.Read(b)
		return string(b)
	}
	const limit = 300 << 10
	snap := func(c Clone) (Bundle, map[string]string) {
		t.Helper()
		b, err := here.Snapshot(t.Context(), c, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Data) > limit {
			t.Errorf("%d bytes", len(b.Data))
		}
		return b, workTree(t, o.restored(there, b).Dir)
	}
	c := checkout(t, here, api)
	write(t, c.Dir+"/README.md", "two\n")
	write(t, c.Dir+"/large.bin", noise(2<<20))
	testGit(t, c.Dir, "add", "--all") // also in the index
	write(t, c.Dir+"/small.txt", "small\n")
	b, files := snap(c)
	if diff := cmp.Diff(map[string]string{"README.md": "two\n", "small.txt": "small\n"}, files); diff != "" ||
		!slices.Equal(b.Missing, []string{"large.bin"}) {
		t.Errorf("with a large file: missing %q\n%s", b.Missing, diff)
	}

	testGit(t, c.Dir, "commit", "--quiet", "--message", "readme", "README.md")
	testGit(t, c.Dir, "reset", "--quiet")
	write(t, c.Dir+"/large.bin", "")
	var names []string
	for i := range maxNamed + 20 {
		names = append(names, fmt.Sprintf("f%03d", i))
		write(t, c.Dir+"/"+names[i], noise(20<<10))
	}
	b, files = snap(c)
	kept := limit * 3 / 4 / (20 << 10)
	if len(files) != 1+1+kept || files["README.md"] != "two\n" || files["small.txt"] != "small\n" {
		t.Errorf("with many files: %d", len(files))
	}
	if want := fmt.Sprintf("%d more files", 20-kept); len(b.Missing) != maxNamed+1 || b.Missing[maxNamed] != want {
		t.Errorf("missing %q", b.Missing)
	}

	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "all of it")
	if _, err := here.Snapshot(t.Context(), c, limit); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("commits that are too large: %v", err)
	}
}

// A bundle is restored completely or not at all. Otherwise the old clone is unchanged.
func TestBundleThatCannotBeRestored(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	here, there := o.files(), o.files()
	o.commit("doomed", map[string]string{"doomed.txt": "x\n"})
	testGit(t, o.work, "checkout", "--quiet", "main")
	o.commit("aside", map[string]string{"aside.txt": "x\n"})
	c := checkout(t, here, Want{Thread: api.Thread, Repo: api.Repo, Ref: "doomed"})
	write(t, c.Dir+"/README.md", "two\n")
	testGit(t, c.Dir, "commit", "--quiet", "--all", "--message", "work")
	write(t, c.Dir+"/README.md", "three\n")
	testGit(t, c.Dir, "branch", "--no-track", "local", "origin/aside")
	good := bundle(t, here, c)

	old := checkout(t, there, api)
	write(t, old.Dir+"/mine.txt", "precious\n")
	before := snapshot(t, old.Dir)
	resum := func(b Bundle) Bundle { b.Sum = sum(b.Data); return b }
	for name, spoil := range map[string]func(b Bundle) Bundle{
		"flipped":    func(b Bundle) Bundle { b.Data[len(b.Data)/2] ^= 1; return b },
		"cut":        func(b Bundle) Bundle { b.Data = b.Data[:len(b.Data)-30]; return b },
		"cut, known": func(b Bundle) Bundle { b.Data = b.Data[:len(b.Data)-30]; return resum(b) },
		"no pack":    func(b Bundle) Bundle { b.Data = nil; return resum(b) },
		"garbage":    func(b Bundle) Bundle { b.Data = []byte("garbage"); return resum(b) },
		"other repo": func(b Bundle) Bundle { b.Repo = "acme/other"; return b },
		"option":     func(b Bundle) Bundle { b.Head = "--upload-pack=touch"; return b },
		"ref":        func(b Bundle) Bundle { b.Refs["refs/heads/a b"] = b.Head; return b },
		"our ref":    func(b Bundle) Bundle { b.Refs["refs/remotes/origin/main"] = b.Head; return b },
		"no commit":  func(b Bundle) Bundle { b.Head = strings.Repeat("ab", 20); return b },
		"no work":    func(b Bundle) Bundle { b.Work = strings.Repeat("ab", 20); return b },
	} {
		_, err := there.Restore(t.Context(), api, spoil(carried(t, good)))
		if !errors.Is(err, ErrBundle) || name == "flipped" && !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v, want ErrBundle", name, err)
		}
		if diff := cmp.Diff(before, snapshot(t, old.Dir)); diff != "" {
			t.Errorf("%s changed the clone:\n%s", name, diff)
		}
		if left := leftovers(t, old.Dir); len(left) > 0 {
			t.Errorf("%s left %v", name, left)
		}
	}

	// No branch has the commits that the work builds on, but the host still serves them by SHA.
	testGit(t, o.work, "push", "--quiet", "origin", ":refs/heads/doomed", ":refs/heads/aside")
	testGit(t, o.bare, "config", "uploadpack.allowAnySHA1InWant", "true")
	third := o.files()
	again := o.restored(third, good)
	if got := workTree(t, again.Dir)["README.md"]; got != "three\n" {
		t.Errorf("README.md is %q", got)
	}
	if got, want := testGit(t, again.Dir, "rev-parse", "local"), testGit(t, c.Dir, "rev-parse", "local"); got != want {
		t.Errorf("branch local is %s, want %s", got, want)
	}
	// And then it is gone.
	testGit(t, o.bare, "-c", "gc.pruneExpire=now", "gc", "--quiet", "--prune=now")
	if _, err := o.files().Restore(t.Context(), api, good); !errors.Is(err, ErrBundle) {
		t.Errorf("without the commit it builds on: %v, want ErrBundle", err)
	}
	// An unreachable remote says nothing of the bundle.
	if err := os.Rename(o.bare, o.bare+"2"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.files().Restore(t.Context(), api, good); err == nil || errors.Is(err, ErrBundle) {
		t.Errorf("without the remote: %v", err)
	}
}

// The CLI's configuration should come from the base branch, not from an agent's changes.
func TestRestoreWithTrustedConfig(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{".mcp.json": "trusted\n"})
	o.commit("feature", map[string]string{".mcp.json": "proposed\n"})
	here, there := o.files(), o.files()
	want := Want{Thread: "t", Repo: "acme/api", Ref: "feature", TrustedConfig: true}
	c := checkout(t, here, want)
	write(t, c.Dir+"/.mcp.json", "planted\n")
	write(t, c.Dir+"/sub/.mcp.json", "planted\n")
	write(t, c.Dir+"/new.txt", "new\n")
	again, err := there.Restore(t.Context(), want, carried(t, bundle(t, here, c)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"README.md": "one\n", ".mcp.json": "trusted\n", "new.txt": "new\n"},
		workTree(t, again.Dir)); diff != "" {
		t.Error(diff)
	}
	if got := testGit(t, again.Dir, "status", "--porcelain"); got != "?? new.txt" {
		t.Errorf("status: %s", got)
	}
}

func TestLeaveAndEnter(t *testing.T) {
	t.Parallel()
	w := newOrigin(t).files()
	enter := func(want string) {
		t.Helper()
		if got, err := w.Enter("t"); err != nil || got != want {
			t.Errorf("entered with %q, %v; want %q", got, err, want)
		}
	}
	leave := func(thread string) string {
		t.Helper()
		token, err := w.Leave(thread)
		if err != nil || token == "" {
			t.Errorf("left with %q, %v", token, err)
		}
		return token
	}
	enter("")
	first := leave("t")
	leave("other")
	second := leave("t")
	if first == second {
		t.Error("two calls returned the same token")
	}
	enter(second)
	enter("")
}
