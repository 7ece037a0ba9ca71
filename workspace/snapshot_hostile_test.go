package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Odd files should be left out and named, and none should block the snapshot.
func TestSnapshotOfOddThings(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{"pipe": "x\n", "huge": "x\n"})
	here, there := o.files(), o.files()
	c := checkout(t, here, api)
	for _, name := range []string{
		"pipe", "other-pipe", ".git/refs/heads/pipe", ".git/objects/pack/pack-" + strings.Repeat("a", 40) + ".idx",
		".git/info/exclude",
	} {
		fifo(t, c.Dir+"/"+name)
	}
	for _, name := range []string{"huge", "new-huge"} {
		if err := os.Truncate(touched(t, c.Dir+"/"+name), 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	testGit(t, c.Dir, "init", "--quiet", "nested")
	write(t, c.Dir+"/nested/x", "x\n")
	write(t, c.Dir+"/.GIT/config", "[core]\n\tfsmonitor = touch x\n")
	write(t, c.Dir+"/good.txt", "good\n")
	b := bundle(t, here, c)
	if diff := cmp.Diff([]string{".GIT/config", "huge", "nested/", "new-huge", "pipe"}, b.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	want := map[string]string{"README.md": "one\n", "good.txt": "good\n", "huge": "x\n", "pipe": "x\n"}
	if diff := cmp.Diff(want, workTree(t, o.restored(there, b).Dir)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}

	// Git itself waits for a pipe of this name. The wait is bounded, and no process is left.
	fifo(t, c.Dir+"/.gitignore")
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.OpenFile(c.Dir+"/.gitignore", os.O_WRONLY, 0) // returns when git has opened it, too
		cancel()
		opened <- f
	}()
	if _, err := here.Snapshot(ctx, c, bundleLimit); !errors.Is(err, context.Canceled) {
		t.Errorf("with a pipe for .gitignore: %v", err)
	}
	if ctx.Err() == nil {
		t.Fatal("git did not wait for it")
	}
	_ = (<-opened).Close()
	write(t, c.Dir+"/.gitignore", "")
	bundle(t, here, c)

	// A pipe that takes a file's place at the last moment is opened, but not waited for.
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, _, err := openFile(root, "pipe"); !errors.Is(err, errNoFile) {
		t.Errorf("open of a pipe: %v", err)
	}
}

func touched(t *testing.T, name string) string {
	t.Helper()
	write(t, name, "x")
	return name
}

// Objects that an agent forged should not get into a clone.
func TestHostileObjectsAreRefused(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	here, there := o.files(), o.files()
	c := checkout(t, here, api)
	testGit(t, c.Dir, "update-ref", "refs/heads/evil", testGit(t, c.Dir, "commit-tree", "-m", "evil",
		evilTree(t, c.Dir)))
	testGit(t, c.Dir, "symbolic-ref", "HEAD", "refs/heads/evil")
	b, err := here.Snapshot(t.Context(), c, bundleLimit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.Restore(t.Context(), api, b); !errors.Is(err, ErrBundle) ||
		!strings.Contains(err.Error(), "hasDotgit") {
		t.Errorf("restored: %v", err)
	}
}

// evilTree is a tree with a file .git/config, which git would not make.
func evilTree(t *testing.T, dir string) (object string) {
	t.Helper()
	blob := testGit(t, dir, "hash-object", "-w", "README.md")
	inner := strings.TrimSpace(feed(t, dir, "100644 blob "+blob+"\tconfig\n", "mktree"))
	return feed(t, dir, "040000 tree "+inner+"\t.git\n", "mktree")
}

func feed(t *testing.T, dir, in string, args ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in")
	write(t, name, in)
	return testGit(t, dir, "-c", "alias.feed=!f() { in=$1; shift; git \"$@\" < \"$in\"; }; f", "feed", name,
		strings.Join(args, " "))
}

// Only a branch can be checked out.
func TestSnapshotOnTheStash(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	here, there := o.files(), o.files()
	c := checkout(t, here, api)
	write(t, c.Dir+"/README.md", "two\n")
	testGit(t, c.Dir, "stash", "--quiet")
	testGit(t, c.Dir, "symbolic-ref", "HEAD", "refs/stash")
	b := bundle(t, here, c)
	if b.Branch != "" {
		t.Errorf("on branch %q", b.Branch)
	}
	if head := testGit(t, o.restored(there, b).Dir, "rev-parse", "--symbolic-full-name", "HEAD"); head != "HEAD" {
		t.Errorf("restored on %s", head)
	}
}

// An agent at full speed neither breaks a snapshot nor notices one.
func TestSnapshotBesideAnAgent(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	here, there := o.files(), o.files()
	c := checkout(t, here, api)
	write(t, c.Dir+"/steady.txt", "steady\n")
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			name := filepath.Join(c.Dir, "busy"+strconv.Itoa(i%7))
			err := os.WriteFile(name, []byte(strings.Repeat("x", i%1000)), 0o600)
			if err == nil && i%3 == 0 {
				err = os.Remove(name)
			}
			if err == nil && i%20 == 0 {
				_, err = tryGit(t, c.Dir, "add", "--all", "--ignore-errors")
			}
			if err == nil && i%40 == 0 {
				_, err = tryGit(t, c.Dir, "commit", "--quiet", "--allow-empty", "--message", "busy")
			}
			if err == nil && i%200 == 0 {
				_, err = tryGit(t, c.Dir, "repack", "-a", "-d", "-l", "--quiet")
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	var last Bundle
	for range 5 {
		last = bundle(t, here, c)
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Errorf("the agent was disturbed: %v", err)
	}
	if got := workTree(t, o.restored(there, last).Dir)["steady.txt"]; got != "steady\n" {
		t.Errorf("steady.txt is %q", got)
	}
}
