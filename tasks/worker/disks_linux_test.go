package worker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/workspace"
)

// ownProcess is set in the environment of a test that runs in a separate process.
const ownProcess = "ERRAND_TEST_OWN_PROCESS"

// apart runs a test again in a separate process, and reports whether this is that process.
func apart(t *testing.T, attr *syscall.SysProcAttr) bool {
	t.Helper()
	if os.Getenv(ownProcess) == t.Name() {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env, cmd.SysProcAttr = append(os.Environ(), ownProcess+"="+t.Name()), attr
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// A worker whose disk becomes read-only fails no task: the one that meets the fault goes to another worker without an
// attempt, and the worker takes none until it can write again.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	mounts := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if !apart(t, mounts) {
		return
	}
	f := newFleet(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1g"); err != nil {
		t.Fatal(err)
	}
	f.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("tmpfs", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	there := &fakeAgent{}
	f.worker(with(there), func(c *Config) {
		c.Timing.Health = 36 * time.Second // 3 s while it cannot
		space, err := workspace.New(workspace.Config{
			Dir: filepath.Join(dir, "w"), URL: func(r string) string { return "/nowhere/" + r },
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Workspace, c.Disks = space, []string{dir}
	})
	if e := f.ending(f.submit(f.task("before", "x"))); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
	remount(unix.MS_RDONLY)
	ids := []string{f.submit(f.task("a", "x"))}
	f.workers(func(all []store.Worker) bool {
		return len(all) == 1 && strings.Contains(string(all[0].Health), "read-only file system")
	})
	f.worker()
	for i := range 8 {
		ids = append(ids, f.submit(f.task(fmt.Sprint(i), "x")))
	}
	for _, id := range ids {
		if e, s := f.ending(id), f.status(id); e.Kind != tasks.Answered || s.Attempt != 1 {
			t.Errorf("ending %+v at attempt %d", e, s.Attempt)
		}
	}
	if n := len(there.specs()); n != 1 {
		t.Errorf("the worker without a disk ran %d tasks", n)
	}
	mended := time.Now()
	remount(0)
	f.workers(func(all []store.Worker) bool { return len(all) == 2 && capacity.Able(all[0]) && capacity.Able(all[1]) })
	if took := time.Since(mended); took > 18*time.Second {
		t.Errorf("it has looked again after %s", took)
	}
}

// A worker with too many open files takes no tasks and says so.
func TestTooManyOpenFiles(t *testing.T) {
	t.Parallel()
	if !apart(t, nil) {
		return
	}
	f := newFleet(t)
	w := f.idle(func(c *Config) { c.Disks = []string{t.TempDir()} })
	if h := w.Examine(t.Context()); !h.OK {
		t.Fatalf("health: %+v", h)
	}
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: most.Max}); err != nil {
		t.Fatal(err)
	}
	var held []*os.File
	for {
		file, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, file)
	}
	h := w.Examine(t.Context())
	for _, file := range held {
		_ = file.Close()
	}
	if h.OK || !strings.Contains(h.Problem, "too many open files") || !strings.Contains(h.Remedy, "ulimit -n") {
		t.Errorf("health without a file: %+v", h)
	}
	if h := w.Examine(t.Context()); !h.OK {
		t.Errorf("health afterwards: %+v", h)
	}
}
