package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := func(path string, mode os.FileMode) string {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("checkout/node_modules/.bin/claude", 0o700)
	global := file("bin/claude", 0o700)
	plain := file("plain/claude", 0o600)
	path := filepath.Dir(plain) + ":relative:" + filepath.Dir(global)
	for _, c := range []struct{ explicit, path, want string }{
		{"", path, global},
		{global, "", global},
		{"claude", path, global},
		{plain, path, ""}, // named, but not executable: nothing else is taken instead
		{"", filepath.Dir(plain), ""},
	} {
		got, err := Find(c.explicit, c.path)
		if e, ok := errors.AsType[*Error](err); got != c.want || (c.want == "") != ok ||
			ok && e.Class != ClassCLIMissing {
			t.Errorf("Find(%q, %q) = %q, %v; want %q", c.explicit, c.path, got, err, c.want)
		} else if ok && strings.Contains(e.Message, "ERRAND_CLAUDE") {
			t.Errorf("%q: the remedy is the class's and would appear twice", e.Message)
		}
	}
	pinned := file("release/node_modules/.bin/claude", 0o700)
	for dir, want := range map[string]string{
		"release": pinned, "release/bin": pinned, "release/far/away": "", "elsewhere": "",
	} {
		if got := onPath("claude", besides("", filepath.Join(root, dir))); got != want {
			t.Errorf("beside a program in %s: %q, want %q", dir, got, want)
		}
	}
}

// A file of the directory in which the process works is not the CLI, nor is one of a directory above it.
func TestFindOutsideTheWorkingDirectory(t *testing.T) {
	checkout := t.TempDir()
	planted := filepath.Join(checkout, "node_modules", ".bin")
	deep := filepath.Join(checkout, "deep")
	for _, dir := range []string{planted, deep} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(planted, "claude"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{checkout, deep, planted} {
		t.Chdir(dir)
		if got, err := Find("", "relative:.:node_modules/.bin"); strings.HasPrefix(got, checkout) {
			t.Errorf("in %s: %q, %v", dir, got, err)
		}
	}
}
