package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// setUp writes what a set-up leaves: in the home, in a directory that git ignores, and elsewhere.
func setUp(t *testing.T, times *atomic.Int32) func(context.Context, Clone, Layer) error {
	t.Helper()
	return func(_ context.Context, c Clone, home Layer) error {
		times.Add(1)
		if head := testGit(t, c.Dir, "rev-parse", "HEAD"); head != c.BaseSHA {
			t.Errorf("it runs at %s, not at the base %s", head, c.BaseSHA)
		}
		for _, name := range []string{
			filepath.Join(home.Changes, "upper", "go", "mod"), filepath.Join(c.Dir, "a", "node_modules", "lib"),
			filepath.Join(c.Dir, "new", "file"),
		} {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(name, []byte("content"), 0o444); err != nil {
				return err
			}
		}
		return os.Chmod(filepath.Join(home.Changes, "upper", "go"), 0o555) // as Go's module cache
	}
}

// environmentOf is a workspace with a clone of a repository that ignores node_modules.
func environmentOf(t *testing.T) (*Workspace, Clone) {
	t.Helper()
	o := newOrigin(t)
	o.commit("main", map[string]string{".gitignore": "node_modules\n", "a/x": "x"})
	w := o.files()
	c, err := w.Checkout(t.Context(), Want{Thread: "a", Repo: "acme/api"})
	if err != nil {
		t.Fatal(err)
	}
	return w, c
}

// Several threads that need an environment at the same time set it up once, and keep what it left.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	w, c := environmentOf(t)
	var times atomic.Int32
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			e, release, err := EnvironmentsOf(w).Use(t.Context(), c, "one", setUp(t, &times))
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if !slices.Equal(e.Dirs, []string{"a/node_modules"}) || e.Size != 14 || e.Repo != "acme/api" ||
				e.Took <= 0 || e.Used.Before(e.Created.Truncate(1e9)) {
				t.Errorf("%+v", e)
			}
		})
	}
	all.Wait()
	if times.Load() != 1 {
		t.Errorf("set up %d times", times.Load())
	}
	e, release, err := EnvironmentsOf(w).Use(t.Context(), c, "one", nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := EnvironmentsOf(w).Layers(t.Context(), c, e)
	if err != nil || len(layers) != 2 || layers[0].At != "" ||
		layers[1].At != filepath.Join(c.Dir, "a", "node_modules") {
		t.Fatalf("%+v %v", layers, err)
	}
	for _, file := range []string{filepath.Join(layers[0].Lower, "go", "mod"), filepath.Join(layers[1].Lower, "lib")} {
		if text, err := os.ReadFile(file); string(text) != "content" {
			t.Error(file, err)
		}
	}
	if status := testGit(t, c.Dir, "status", "--porcelain", "--ignored"); status != "" {
		t.Errorf("the clone has %s", status)
	}
	listed, err := EnvironmentsOf(w).List()
	if err != nil || len(listed) != 1 || listed[0].ID != "one" {
		t.Fatalf("%+v %v", listed, err)
	}
	if gone, err := EnvironmentsOf(w).Discard(listed[0]); gone || err != nil {
		t.Error("discarded while it was used", err)
	}
	if gone, err := EnvironmentsOf(w).Discard(e); gone || err != nil {
		t.Error("discarded although it was used since it was read", err)
	}
	release()
	if gone, err := EnvironmentsOf(w).Discard(listed[0]); !gone || err != nil {
		t.Error(gone, err)
	}
	if err := w.Empty(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"trash", "environments/one", "environments/one.tmp"} {
		if exists(filepath.Join(w.cfg.Dir, dir)) {
			t.Error(dir, "is left")
		}
	}
}

// The changes of a thread stay for its next runs in the same environment, and only for those.
func TestChangesOfAnEnvironment(t *testing.T) {
	t.Parallel()
	w, c := environmentOf(t)
	var times atomic.Int32
	changes := func(c Clone, id string) []Layer {
		t.Helper()
		e, release, err := EnvironmentsOf(w).Use(t.Context(), c, id, setUp(t, &times))
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		layers, err := EnvironmentsOf(w).Layers(t.Context(), c, e)
		if err != nil {
			t.Fatal(err)
		}
		return layers
	}
	c.Fresh = false
	note := filepath.Join(changes(c, "one")[0].Changes, "note")
	write(t, note, "changed")
	if changes(c, "one"); !exists(note) {
		t.Error("the next run has lost the changes")
	}
	again, err := w.Checkout(t.Context(), Want{Thread: "a", Repo: "acme/api"})
	if err != nil || !again.Fresh {
		t.Fatal(again, err)
	}
	if changes(again, "one"); exists(note) {
		t.Error("a new clone has the changes")
	}
	write(t, note, "changed")
	if changes(c, "two"); exists(note) {
		t.Error("the changes of another environment are left")
	}
	// A run may have replaced the directory by a link that leads out of the clone.
	if err := os.RemoveAll(filepath.Join(c.Dir, "a")); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(c.Dir, "a")); err != nil {
		t.Fatal(err)
	}
	if l := changes(c, "two"); len(l) != 1 || exists(filepath.Join(outside, "node_modules")) {
		t.Errorf("%+v", l)
	}
}

// A set-up that fails leaves nothing, and the next one begins from the start.
func TestFailedSetUp(t *testing.T) {
	t.Parallel()
	w, c := environmentOf(t)
	var times atomic.Int32
	failed := errors.New("no network")
	_, _, err := EnvironmentsOf(w).Use(t.Context(), c, "one",
		func(ctx context.Context, c Clone, home Layer) error {
			return errors.Join(setUp(t, &times)(ctx, c, home), failed)
		})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if listed, err := EnvironmentsOf(w).List(); len(listed) > 0 || err != nil {
		t.Errorf("%+v %v", listed, err)
	}
	for _, left := range []string{"threads/environment-*[^k]", "environments/*.tmp*"} {
		if found, err := filepath.Glob(filepath.Join(w.cfg.Dir, left)); len(found) > 0 || err != nil {
			t.Errorf("left behind: %s", strings.Join(found, " "))
		}
	}
	if _, release, err := EnvironmentsOf(w).Use(t.Context(), c, "one", setUp(t, &times)); err != nil {
		t.Error(err)
	} else {
		release()
	}
	killed := EnvironmentsOf(w).path("killed") + incomplete + "x"
	write(t, filepath.Join(killed, threadOfSetUp), "environment/killed/x")
	write(t, filepath.Join(w.threadDir("environment/killed/x"), "file"), "x")
	if err := w.Empty(); err != nil || exists(killed) || exists(w.threadDir("environment/killed/x")) ||
		!exists(EnvironmentsOf(w).path("one")) {
		t.Error("an incomplete environment is left, or a complete one has gone:", err)
	}
}

// A commit keeps a file that a run has forced into a directory that git ignores, although only runs see it there. From
// then on the directory belongs to the repository.
func TestFilesInALayer(t *testing.T) {
	t.Parallel()
	w, c := environmentOf(t)
	var times atomic.Int32
	e, release, err := EnvironmentsOf(w).Use(t.Context(), c, "one", setUp(t, &times))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	c.Fresh = false
	layers, err := EnvironmentsOf(w).Layers(t.Context(), c, e)
	if err != nil || len(layers) != 2 {
		t.Fatal(layers, err)
	}
	file := filepath.Join(layers[1].At, "made.js")
	write(t, file, "made")
	testGit(t, c.Dir, "add", "--force", file)
	testGit(t, c.Dir, "commit", "--quiet", "--message", "made")
	if err := os.Remove(file); err != nil { // outside the run it is in the layer
		t.Fatal(err)
	}
	p, err := w.Publish(t.Context(), c, Publication{
		Branch: "errand/a", Message: "rest", Permit: func(context.Context, string) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := testGit(t, c.Mirror, "ls-tree", "-r", "--name-only",
		p.Commit, "a/"); got != "a/node_modules/made.js\na/x" {
		t.Errorf("published %q", got)
	}
	if layers, err := EnvironmentsOf(w).Layers(t.Context(), c, e); err != nil || len(layers) != 1 {
		t.Errorf("%+v %v", layers, err)
	}
	if text, err := os.ReadFile(file); string(text) != "made" {
		t.Error("the next run does not see the file:", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := EnvironmentsOf(w).Layers(t.Context(), c, e); err != nil {
		t.Fatal(err)
	}
	p, err = w.Publish(t.Context(), c, Publication{
		Branch: "errand/a", Message: "rest", Permit: func(context.Context, string) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := testGit(t, c.Mirror, "ls-tree", "-r", "--name-only", p.Commit, "a/"); got != "a/x" {
		t.Errorf("published %q after the file was deleted", got)
	}
}

// A directory that git ignores is kept once, with those inside it, and of very many the largest are kept.
func TestIgnoredDirectories(t *testing.T) {
	t.Parallel()
	w, c := environmentOf(t)
	e, release, err := EnvironmentsOf(w).Use(t.Context(), c, "one",
		func(_ context.Context, c Clone, home Layer) error {
			write(t, filepath.Join(home.Changes, "upper", "x"), "x")
			write(t, filepath.Join(c.Dir, "only", "node_modules", "x"), "x")
			for i := range maxEnvironmentDirs {
				write(t, filepath.Join(c.Dir, "a", string(rune('A'+i)), "node_modules", "x"), strings.Repeat("x", 10+i))
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	release()
	if len(e.Dirs) != maxEnvironmentDirs || slices.Contains(e.Dirs, "only") || !slices.Contains(e.Dirs, "a/B") {
		t.Errorf("%d: %q", len(e.Dirs), e.Dirs)
	}
}

// A version is the content of a file or directory of the base branch, and a name of a second line is none.
func TestVersions(t *testing.T) {
	t.Parallel()
	w, c := environmentOf(t)
	got, err := EnvironmentsOf(w).Versions(t.Context(), c, []string{"missing", "a", "a/x"})
	at := func(name string) string { return testGit(t, c.Dir, "rev-parse", c.BaseSHA+":"+name) }
	if want := []string{"", at("a"), at("a/x")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("versions %q, want %q, %v", got, want, err)
	}
	if got, err := EnvironmentsOf(w).Versions(t.Context(), c, []string{"a\nHEAD"}); err == nil {
		t.Errorf("versions %q", got)
	}
}
