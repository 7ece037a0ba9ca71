package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// threads lists by name.
func threads(t *testing.T, w *Workspace) map[string]Thread {
	t.Helper()
	list, err := w.Threads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Thread{}
	for _, thread := range list {
		all[thread.Name] = thread
	}
	return all
}

func TestThreadsAreListedAndDiscarded(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	if all := threads(t, w); len(all) != 0 {
		t.Errorf("nothing is there but %v", all)
	}
	if _, err := w.Enter("slack/a"); err != nil {
		t.Fatal(err)
	}
	files, err := w.Files("slack/b")
	if err != nil {
		t.Fatal(err)
	}
	write(t, files+"/x", "12345")
	write(t, filepath.Join(w.cfg.Dir, "threads", "of-nobody", "x"), "x")
	write(t, filepath.Join(w.cfg.Dir, "threads", "in-a-wrong-place", nameFile), "slack/a")
	all := threads(t, w)
	if len(all) != 2 || all["slack/b"].Size != 5+int64(len("slack/b")) || time.Since(all["slack/a"].Used) > time.Hour {
		t.Errorf("threads %+v", all)
	}

	// A thread used after it was listed stays.
	before := all["slack/a"]
	before.Used = before.Used.Add(-time.Second)
	if gone, err := w.Discard(t.Context(), before); gone || err != nil {
		t.Errorf("discard a used thread: %t, %v", gone, err)
	}
	if gone, err := w.Discard(t.Context(), all["slack/b"]); !gone || err != nil {
		t.Errorf("discard: %t, %v", gone, err)
	}
	if exists(files) || len(threads(t, w)) != 1 {
		t.Error("it is still there")
	}
	readOnly := filepath.Join(w.trash(), "old", "module")
	write(t, readOnly+"/x", "x")
	if err := os.Chmod(readOnly, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := w.Empty(); err != nil || exists(w.trash()) {
		t.Errorf("empty: %v", err)
	}
	if err := w.Empty(); err != nil {
		t.Errorf("empty an empty trash: %v", err)
	}
}

func TestUseOfAThreadIsSeen(t *testing.T) {
	t.Parallel()
	w := newOrigin(t).files()
	long := time.Now().Add(-48 * time.Hour).Truncate(time.Second)
	old := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.Chtimes(filepath.Join(w.threadDir("t"), name), long, long); err != nil {
				t.Fatal(err)
			}
		}
		if got := threads(t, w)["t"].Used; !got.Equal(long) {
			t.Errorf("used at %s, want %s", got, long)
		}
	}
	enter := func() {
		t.Helper()
		if _, err := w.Enter("t"); err != nil {
			t.Fatal(err)
		}
	}
	enter()
	old(nameFile)
	if _, err := w.Scratch("t"); err != nil { // used by a run, which has entered
		t.Fatal(err)
	}
	old(nameFile)
	if _, err := w.Leave("t"); err != nil {
		t.Fatal(err)
	}
	if got := threads(t, w)["t"].Used; !got.After(long) {
		t.Error("Leave did not change the time")
	}
	old(nameFile, leftName)
	enter()
	if got := threads(t, w)["t"].Used; !got.After(long) {
		t.Error("Enter did not change the time")
	}
}

func TestOneClearsUpAtATime(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	here := o.files()
	there := open(t, here.cfg) // another process on the same root, as far as flock can tell
	alone, err := here.Alone(func() error {
		if other, err := there.Alone(func() error { t.Error("both"); return nil }); other || err != nil {
			t.Errorf("the other: %t, %v", other, err)
		}
		return nil
	})
	if !alone || err != nil {
		t.Errorf("alone: %t, %v", alone, err)
	}
	if again, err := there.Alone(func() error { return nil }); !again || err != nil {
		t.Errorf("afterwards: %t, %v", again, err)
	}
}
