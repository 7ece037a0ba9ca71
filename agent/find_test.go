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
	pinned := file("checkout/node_modules/.bin/claude", 0o700)
	global := file("bin/claude", 0o700)
	plain := file("plain/claude", 0o600)
	path := filepath.Dir(plain) + ":relative:" + filepath.Dir(global)
	for _, c := range []struct{ explicit, dir, path, want string }{
		{"", filepath.Join(root, "checkout"), path, pinned},
		{"", filepath.Join(root, "checkout/deep/er"), path, pinned},
		{"", root, path, global},
		{global, filepath.Join(root, "checkout"), "", global},
		{plain, root, path, ""}, // named, but not executable: nothing else is taken instead
		{"", root, filepath.Dir(plain), ""},
	} {
		got, err := Find(c.explicit, c.dir, c.path)
		if e, ok := errors.AsType[*Error](err); got != c.want || (c.want == "") != ok ||
			ok && e.Class != ClassCLIMissing {
			t.Errorf("Find(%q, %q, %q) = %q, %v; want %q", c.explicit, c.dir, c.path, got, err, c.want)
		} else if ok && strings.Contains(e.Message, "ERRAND_CLAUDE") {
			t.Errorf("%q: the remedy is the class's and would appear twice", e.Message)
		}
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Rel(here, filepath.Join(root, "checkout"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Find("", below, ""); got != pinned {
		t.Errorf("from a relative directory: %q, %v; want %q", got, err, pinned)
	}
}
