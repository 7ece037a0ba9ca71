package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A worker without a sandbox takes its one task only where it can remove all that the task may leave.
func TestOnceNeedsAContainer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const sealed = "67 43 254:0 / / ro,relatime - ext4 /dev/vda rw\n"
	for name, c := range map[string]struct {
		mounts string
		places []string
		fine   bool
	}{
		"sealed":    {sealed, nil, true},
		"a machine": {"67 43 254:0 / / rw,relatime - ext4 /dev/vda rw\n", []string{"/tmp"}, false},
		"forgotten": {sealed + "69 67 0:41 / " + dir + " rw - tmpfs tmpfs rw\n", []string{"/tmp/other"}, false},
		"read-only": {sealed + "69 67 0:41 / " + dir + " ro - tmpfs tmpfs rw\n", nil, true},
		"emptied":   {sealed + "69 67 0:41 / " + dir + " rw - tmpfs tmpfs rw\n", []string{dir}, true},
		"below":     {sealed + "69 67 0:41 / " + dir + " rw - tmpfs tmpfs rw\n", []string{filepath.Dir(dir)}, true},
	} {
		o := &once{places: c.places}
		if err := o.covers(c.mounts, func(string) bool { return true }); (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&once{}).covers(sealed+"69 67 0:41 / "+dir+" rw - tmpfs tmpfs rw\n",
		func(string) bool { return false }); err != nil {
		t.Errorf("what no task can write: %v", err)
	}
}

// Everything in the directories goes, also where a task has taken its own rights away.
func TestEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, path := range []string{"a/b/c", "d"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "a", "b"), 0); err != nil {
		t.Fatal(err)
	}
	if err := empty(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	if err := empty(filepath.Join(dir, "missing")); err != nil {
		t.Error(err)
	}
}
