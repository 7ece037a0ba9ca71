package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/errand-fleet/errand/internal/nobody"
)

// A worker without a sandbox takes its one task only where it can remove all that the task may leave.
func TestOnceNeedsAContainer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const sealed = "67 43 254:0 / / ro,relatime - ext4 /dev/vda rw\n"
	mount := func(at, how, kind string) string {
		return sealed + "69 67 0:41 / " + at + " " + how + " shared:1 - " + kind + " it rw\n"
	}
	for name, c := range map[string]struct {
		mounts   string
		places   []string
		readOnly bool // by the rights of files
		fine     bool
	}{
		"sealed":           {sealed, nil, false, true},
		"a machine":        {"67 43 254:0 / / rw,relatime - ext4 /dev/vda rw\n", []string{"/tmp"}, false, false},
		"forgotten":        {mount(dir, "rw", "tmpfs"), []string{"/tmp/other"}, false, false},
		"of root":          {mount(dir, "rw", "ext4"), nil, true, false},
		"read-only":        {mount(dir, "ro", "tmpfs"), nil, false, true},
		"emptied":          {mount(dir, "rw", "tmpfs"), []string{dir}, false, true},
		"below":            {mount(dir, "rw", "tmpfs"), []string{filepath.Dir(dir)}, false, true},
		"of the kernel":    {mount(dir, "rw", "proc"), nil, false, true},
		"a file":           {mount(file, "rw", "ext4"), nil, false, false},
		"a file of root":   {mount(file, "rw", "ext4"), nil, true, true},
		"an emptied file":  {mount(file, "rw", "ext4"), []string{file}, false, true},
		"hidden":           {mount(filepath.Join(dir, "none"), "rw", "ext4"), nil, false, true},
		"a device":         {mount("/dev/null", "rw", "tmpfs"), nil, false, true},
		"writable in /dev": {mount("/dev", "rw", "tmpfs"), nil, false, false},
		"control groups":   {mount("/sys/fs/cgroup", "rw", "tmpfs"), nil, true, true},
		"nowhere in /dev":  {mount("/dev", "rw", "tmpfs"), nil, true, true},
	} {
		o := &once{places: c.places}
		if err := o.covers(c.mounts, func(string) bool { return !c.readOnly }); (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A directory of devices may have other mounts, and must have no other place to write to, at whatever depth.
func TestKeeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, "of root", "of all")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	writable := func(path string) bool { return path == deep }
	if !keeps(dir, func(string) bool { return false }, writable) {
		t.Error("a task can write deep in the directory")
	}
	if keeps(dir, func(path string) bool { return path == deep }, writable) {
		t.Error("another mount counts")
	}
	own := filepath.Join(deep, "own")
	if err := os.WriteFile(own, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if !canWrite(own) || os.Geteuid() > 0 && canWrite("/") {
		t.Error("a task can write to what it owns, and to nothing of root's")
	}
}

// Everything in the directories and files goes, also where a task has taken its own rights away.
func TestEmpty(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "place")
	for _, path := range []string{"a/b/c", "d"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := nobody.Call(t, dir, func() error {
		return errors.Join(os.Chmod(filepath.Join(dir, "a", "b"), 0), os.Chmod(dir, 0), empty(dir))
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("left"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := empty(file); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadFile(file); err != nil || len(left) > 0 {
		t.Errorf("%q is left: %v", left, err)
	}
	if err := empty(filepath.Join(dir, "missing")); err != nil {
		t.Error(err)
	}
}
