package workspace

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/internal/await"
)

func TestPresentCommitNeedsNoFetch(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	s := o.serve(rules{})
	w := open(t, Config{Dir: t.TempDir(), URL: s.repo})
	c := checkout(t, w, api)
	hits := s.hits.Load()
	// Nor should it wait for another caller's fetch.
	held, err := lock(t.Context(), w.mirror("acme/api").beside("lock"))
	if err != nil {
		t.Fatal(err)
	}
	want := api
	want.Ref = c.Head
	for _, want.Keep = range []bool{false, true} {
		checkout(t, w, want)
	}
	unlock(held)
	if got := s.hits.Load(); got != hits {
		t.Errorf("%d requests for a commit that is there", got-hits)
	}
	// A branch may have moved.
	for _, ref := range []string{"", "main"} {
		want.Ref = ref
		hits = s.hits.Load()
		checkout(t, w, want)
		if s.hits.Load() == hits {
			t.Errorf("no request for ref %q", ref)
		}
	}
	// The base is needed as well.
	want.Ref, want.Base = c.Head, "later"
	later := o.commit("later", nil)
	if got := checkout(t, w, want); got.BaseSHA != later {
		t.Errorf("base is %s, want %s", got.BaseSHA, later)
	}
}

func TestMirrorFollowsRemote(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	old := o.commit("a", nil)
	w := o.files()
	checkout(t, w, api)
	// A branch in place of a deleted one, a force push, a moved tag, a renamed default branch.
	o.push(":refs/heads/a")
	o.commit("trunk", nil)
	testGit(t, o.work, "branch", "--quiet", "--delete", "--force", "a")
	want := o.commit("a/b", map[string]string{"x": "y\n"})
	o.push("HEAD:refs/heads/main")
	testGit(t, o.bare, "symbolic-ref", "HEAD", "refs/heads/trunk")
	c := checkout(t, w, Want{Thread: "t", Repo: "acme/api", Ref: "a/b"})
	if c.Head != want || c.Protected != "trunk" || c.Base != "trunk" {
		t.Errorf("got %+v, want head %s and default branch trunk", c, want)
	}
	if got := testGit(t, c.Mirror, "rev-parse", "refs/heads/main"); got != want {
		t.Errorf("main is %s, want %s", got, want)
	}
	// Clones may borrow commits that no branch has.
	testGit(t, c.Mirror, "cat-file", "-e", old)
}

// A pull request that endangers a checkout does not affect others.
func TestMirrorWithoutDangerousPullRequests(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	checkout(t, w, api)
	tree := o.tree("40000 .git", testGit(t, o.work, "rev-parse", "HEAD^{tree}"))
	sha := o.object("commit", "tree "+tree+"\n"+someAuthor+someCommitter+"\nm\n")
	testGit(t, o.bare, "update-ref", "refs/pull/6/head", sha)
	testGit(t, o.work, "commit", "--quiet", "--allow-empty", "--message", "good")
	good := o.push("HEAD:refs/pull/7/head")
	testGit(t, o.work, "reset", "--quiet", "--hard", "HEAD~1")
	head := o.commit("main", map[string]string{"x": "y\n"})
	for name, w := range map[string]*Workspace{"fetch": w, "new mirror": o.files()} {
		if c, err := w.Checkout(t.Context(), api); err != nil || c.Head != head {
			t.Errorf("%s: %s, %v, want %s", name, c.Head, err, head)
		}
		if c, err := w.Checkout(t.Context(), Want{Thread: "good", Repo: "acme/api", Ref: good}); err != nil ||
			c.Head != good {
			t.Errorf("%s: another pull request: %s, %v, want %s", name, c.Head, err, good)
		}
		if _, err := w.Checkout(t.Context(), Want{Thread: "bad", Repo: "acme/api", Ref: sha}); err == nil {
			t.Errorf("%s: the dangerous commit was checked out", name)
		}
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

func TestManyWorkersAtOnce(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	s := o.serve(rules{})
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 6 {
		w := open(t, Config{Dir: dir, URL: s.repo}) // as a separate process
		want := Want{Thread: string(rune('a' + i/2)), Repo: "acme/api", Keep: i%2 == 0}
		wg.Go(func() {
			if _, err := w.Checkout(t.Context(), want); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	testGit(t, filepath.Join(dir, "mirrors/acme/api.git"), "fsck", "--strict")
}

func TestLockIsWaitedForAsLongAsWanted(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	held, err := lock(t.Context(), w.mirror("acme/api").beside("lock"))
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("the user stopped it")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := w.Checkout(ctx, api); !errors.Is(err, stop) {
		t.Errorf("got %v, want %v", err, stop)
	}
	done := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := w.Checkout(ctx, api)
		done <- err
	}()
	// A process still has the file open, like a git that does not end.
	open, err := unix.Dup(int(held.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(open)
	unlock(held)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A checkout that waits reuses another's fetch if that began late enough.
func TestOneFetchServesWhoWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		began time.Duration // of the other's fetch, after our call
		own   bool
	}{
		"earlier": {-time.Hour, true}, "meanwhile": {0, false}, "by a clock that was set back": {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			s := o.serve(rules{})
			w := open(t, Config{Dir: t.TempDir(), URL: s.repo})
			old := checkout(t, w, api)
			m := w.mirror(api.Repo)
			held, err := lock(t.Context(), m.beside("lock"))
			if err != nil {
				t.Fatal(err)
			}
			o.commit("main", map[string]string{"README.md": "two\n"})
			hits, done := s.hits.Load(), make(chan Clone)
			go func() {
				defer close(done)
				c, err := w.Checkout(t.Context(), api)
				if err != nil {
					t.Error(err)
				}
				done <- c
			}()
			await.Until(t, "the other checkout waits for the mirror", func() bool {
				free, err := tryLock(m.beside("use"))
				if err != nil {
					t.Fatal(err)
				}
				if free != nil {
					unlock(free)
				}
				return free == nil
			})
			if err := m.noteFetch(time.Now().Add(c.began)); err != nil {
				t.Fatal(err)
			}
			unlock(held)
			if got := <-done; (s.hits.Load() > hits) != c.own || (got.Head != old.Head) != c.own {
				t.Errorf("%d requests, head %s after %s", s.hits.Load()-hits, got.Head, old.Head)
			}
		})
	}
}

// The leftovers of a killed process.
func TestLeftoversAreRemoved(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	m := w.mirror("acme/api")
	write(t, m.beside("tmp")+"/HEAD", "ref: refs/heads/main\n")
	checkout(t, w, api)
	o.commit("main", map[string]string{"README.md": "two\n"})
	left := []string{
		"packed-refs.lock", "HEAD.lock", "refs/heads/main.lock", "config.lock", "objects/pack/tmp_pack_x",
		"objects/ab/tmp_obj_x",
	}
	for _, name := range left {
		write(t, filepath.Join(m.dir, name), "x")
	}
	want := api
	want.Thread = "another"
	if got := workTree(t, checkout(t, w, want).Dir)["README.md"]; got != "two\n" {
		t.Errorf("README.md is %q", got)
	}
	for _, name := range append(left, "../api.tmp") {
		if exists(filepath.Join(m.dir, name)) {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestDamagedMirrorIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir string){
		"empty":      func(t *testing.T, dir string) { write(t, dir, ""); write(t, dir+"/x", "y") },
		"no HEAD":    func(t *testing.T, dir string) { write(t, dir+"/HEAD", "") },
		"a file":     func(t *testing.T, dir string) { write(t, dir, "x") },
		"no objects": func(t *testing.T, dir string) { write(t, dir+"/objects", "") },
		"no pack": func(t *testing.T, dir string) {
			packs, err := filepath.Glob(dir + "/objects/pack/*")
			if err != nil || len(packs) == 0 {
				t.Fatal("no packs", err)
			}
			for _, p := range packs {
				write(t, p, "")
			}
		},
		// Fetch does not see this one: the branch has not moved. The clone does.
		"one blob": loseBlob,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			w := o.files()
			want := api
			want.Keep = true
			c := checkout(t, w, want) // survives, as it borrows by path
			damage(t, c.Mirror)
			other := checkout(t, w, Want{Thread: "other", Repo: "acme/api"})
			if got := workTree(t, other.Dir)["README.md"]; got != "one\n" {
				t.Errorf("README.md is %q", got)
			}
			testGit(t, c.Mirror, "fsck", "--strict")
			if kept := checkout(t, w, want); kept.Fresh {
				t.Error("the first thread lost its clone")
			}
		})
	}
}

// loseBlob removes the only file of a mirror that nobody has published to.
func loseBlob(t *testing.T, dir string) {
	t.Helper()
	blob := testGit(t, dir, "rev-parse", "main:README.md")
	packs, err := filepath.Glob(dir + "/objects/pack/*.pack")
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	data, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/objects/pack", "")
	unpack := exec.CommandContext(t.Context(), "git", "--git-dir="+dir, "unpack-objects", "-q")
	unpack.Stdin = bytes.NewReader(data)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write(t, dir+"/objects/"+blob[:2]+"/"+blob[2:], "")
}

// A good mirror is kept if the network fails for a moment.
func TestGoodMirrorSurvivesFailedFetch(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	var failures atomic.Int64 // remaining
	s := o.serve(rules{failures: &failures})
	w := open(t, Config{Dir: t.TempDir(), URL: s.repo})
	mirror := checkout(t, w, api).Mirror
	before := inode(t, mirror)
	o.commit("main", map[string]string{"README.md": "two\n"})
	failures.Store(1) // a second attempt would succeed: with a new mirror, if it is made
	if _, err := w.Checkout(t.Context(), api); err == nil || Lasting(err) {
		t.Errorf("got %v, want a passing error", err)
	}
	checkout(t, w, api)
	if inode(t, mirror) != before {
		t.Error("the mirror was replaced")
	}
}

// marked lists the processes with this text in their environment. An ending process has none.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range all {
		env, _ := os.ReadFile(path) // gone, or not ours
		if strings.Contains(string(env), mark) {
			found = append(found, path)
		}
	}
	return found
}

func TestCancelLeavesNoProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mark := "ERRAND_TEST_MARK=" + dir
	stop := errors.New("the user stopped it")
	ctx, cancel := context.WithCancelCause(t.Context())
	var once sync.Once
	s := newOrigin(t).serve(rules{fetching: func(request context.Context) {
		once.Do(func() {
			if len(marked(t, mark)) == 0 {
				t.Error("no git is running")
			}
			cancel(stop)
			<-request.Done() // a slow fetch: it ends only when git does
		})
	}})
	w := open(t, Config{Dir: dir, URL: s.repo, Env: []string{mark}})
	if _, err := w.Checkout(ctx, api); !errors.Is(err, stop) {
		t.Errorf("got %v, want %v", err, stop)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if exists(w.mirror("acme/api").dir) {
		t.Error("an incomplete mirror is left")
	}
	checkout(t, w, api)
}

// The git of a killed worker goes on for a while. The next caller should wait for it and not trust its result.
func TestKilledWorkersGitHoldsTheLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	started, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := newOrigin(t).serve(rules{fetching: func(context.Context) {
		once.Do(func() { close(started) })
		<-release
	}})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.CommandContext(t.Context(), exe)
	worker.Env = append(os.Environ(), asWorker+"=checkout "+dir+" "+s.URL)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait() // killed

	w := open(t, Config{Dir: dir, URL: s.repo})
	free := func() bool {
		f, err := os.OpenFile(w.mirror("acme/api").beside("lock"), os.O_RDWR, 0)
		if err != nil {
			t.Error(err)
			return true
		}
		defer f.Close()
		return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	}
	if free() {
		t.Error("the lock is free while the worker's git is running")
	}
	close(release)
	c := checkout(t, w, api)
	testGit(t, c.Mirror, "fsck", "--strict")
	if !free() {
		t.Error("the lock is held after all is done")
	}
}
