package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/internal/dirtree"
	"github.com/errand-fleet/errand/internal/nobody"
)

// A run that adds too much to the disk should be ended with the reason, also if it has removed what it holds open.
func TestTooMuchDisk(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a file of home": "head -c 60M /dev/zero >~/big; sleep 1000",
		"many files":     "for i in {1..60}; do head -c 1M /dev/zero >$i; done; sleep 1000",
		"nested":         "for i in {1..600}; do mkdir d; cd d; done; sleep 1000",
		"a removed file": "exec 9>big; rm big; head -c 60M /dev/zero >&9; sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test := func(t *testing.T, b *bench) {
				b.cfg.MaxDisk = 40 << 20
				// other tests may free what the run takes, and then it is measured once a minute
				b.pingAfter = 5 * time.Minute
				if res := tooMuch(t, b, script, ClassDisk); name != "nested" && res.Resources.Disk <= b.cfg.MaxDisk {
					t.Errorf("result %+v", res)
				}
			}
			if name == "nested" || name == "many files" { // measured from outside, whatever the run sees
				test(t, newBench(t, "shell"))
			} else {
				inBoth(t, "shell", test)
			}
		})
	}
}

// tooMuch is a run that takes too much of something: it is ended completely, with the reason, and nothing else is.
func tooMuch(t *testing.T, b *bench, script string, class Class) Result {
	t.Helper()
	other := agenttest.Lead(t, `setsid sleep 1000 & echo up; read x; echo "still here"`)
	res := b.run(t, t.Context(), Spec{Prompt: Message{Text: script}, Profile: Write, Limit: 5 * time.Minute}, &host{})
	if res.Outcome != Failed || res.Error.Class != class {
		t.Errorf("result %+v, %v", res, res.Error)
	}
	b.gone(t)
	_ = other.Stdin.Close()
	other.Expect(t, "still here")
	other.Ended(t)
	return res
}

// Neither a run nor a script waits long until its directories are measured. What it adds afterwards counts all the
// same.
func TestSlowMeasurement(t *testing.T) {
	t.Parallel()
	const line, limit = "echo >working; read <measured; head -c 60M /dev/zero >big; sleep 1000", 5 * time.Minute
	for name, exceeds := range map[string]func(t *testing.T, b *bench) bool{
		"run": func(t *testing.T, b *bench) bool {
			res := b.run(t, t.Context(), Spec{Prompt: Message{Text: line}, Profile: Write, Limit: limit}, &host{})
			return res.Outcome == Failed && res.Error.Class == ClassDisk
		},
		"script": func(t *testing.T, b *bench) bool {
			s, err := b.Script(t.Context(), Script{ID: unique("slow"), Dir: b.dir, Line: line, Limit: limit})
			return err == nil && s.Outcome == Failed &&
				strings.Contains(s.Output, "MiB to the disk, more than a run may")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "shell")
			b.cfg.MaxDisk, b.diskPatience, b.pingAfter = 40<<20, time.Millisecond, limit
			working, measured := filepath.Join(b.dir, "working"), filepath.Join(b.dir, "measured")
			if err := errors.Join(syscall.Mkfifo(working, 0o600), syscall.Mkfifo(measured, 0o600)); err != nil {
				t.Fatal(err)
			}
			var first sync.Once
			b.walk = func(dir string, depth int, visit func(*os.Root, fs.DirEntry) error) error {
				delayed := false
				first.Do(func() {
					delayed = true
					_, err := os.ReadFile(working)
					if err = errors.Join(err, dirtree.Walk(dir, depth, visit),
						os.WriteFile(measured, []byte("\n"), 0)); err != nil {
						t.Error(err)
					}
				})
				if delayed {
					return nil
				}
				return dirtree.Walk(dir, depth, visit)
			}
			if !exceeds(t, b) {
				t.Error("what it adds does not count")
			}
			b.gone(t)
		})
	}
}

// What a tool hides from an ordinary user counts, and so does the number of files and of directories below one another.
func TestDiskOfHiddenFiles(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o300, 0o400, 0} {
		dir := filepath.Join(t.TempDir(), "dir")
		hidden, deep := filepath.Join(dir, "a", "hidden"), filepath.Join(dir, strings.Repeat("d/", 600))
		err := os.MkdirAll(hidden, 0o700)
		if err = errors.Join(err, os.WriteFile(hidden+"/big", make([]byte, 2<<20), 0o600)); err != nil {
			t.Fatal(err)
		}
		err = nobody.Call(t, dir, func() error {
			w := &diskWatch{dirs: []string{dir}, walk: dirtree.Walk}
			if err := os.Chmod(hidden, mode); err != nil {
				return err
			}
			if use, err := w.size(t.Context()); err != nil || use.bytes < 2<<20 || use.entries != 4 {
				t.Errorf("with mode %o: %+v, %v", mode, use, err)
			}
			w.most = 3
			if _, err := w.size(t.Context()); !errors.Is(err, errTooMany) {
				t.Errorf("too many files: %v", err)
			}
			w.most = 0
			if err := os.MkdirAll(deep, 0o700); err != nil {
				return err
			}
			if _, err := w.size(t.Context()); !errors.Is(err, dirtree.ErrTooDeep) {
				t.Errorf("too deep: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// What was there before does not count, and a script is held to the same limit.
func TestDiskOfScripts(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.cfg.MaxDisk = 40 << 20
	if err := os.WriteFile(filepath.Join(b.dir, "before"), make([]byte, 50<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := b.script(t, t.Context(), "head -c 20M /dev/zero >some", time.Minute); s.Outcome != Done {
		t.Errorf("%+v", s)
	}
	if s := b.script(t, t.Context(), "head -c 60M /dev/zero >big; sleep 1000", 5*time.Minute); s.Outcome != Failed ||
		!strings.Contains(s.Output, "MiB to the disk, more than a run may") {
		t.Errorf("%+v", s)
	}
}

// A descriptor that was sent and not received is noticed, because nothing else shows what its file takes.
func TestDescriptorsInFlight(t *testing.T) {
	t.Parallel()
	l := agenttest.Lead(t, "cd "+t.TempDir()+" && AGENT_TEST_MODE=send exec "+fake)
	if unlinked, waiting := l.Held(); waiting != 1 || unlinked != 0 {
		t.Errorf("%d descriptors wait, and %d bytes are known", waiting, unlinked)
	}
	_ = l.Stdin.Close() // and it receives it
	l.Expect(t, "received")
	if unlinked, waiting := l.Held(); waiting != 0 || unlinked != 1<<20 {
		t.Errorf("%d descriptors wait, and %d bytes are known", waiting, unlinked)
	}
}
