package tasks

import (
	"os"
	"path/filepath"
	"testing"
)

// An agent may have put a link in a file's place.
func TestWriteFileFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "1-a")); err != nil {
		t.Fatal(err)
	}
	path, err := WriteFile(dir, "1-a", []byte("new"))
	if err != nil || path != filepath.Join(dir, "1-a") {
		t.Errorf("%s, %v", path, err)
	}
	for file, want := range map[string]string{outside: "precious", path: "new"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", file, got, err)
		}
	}
}
