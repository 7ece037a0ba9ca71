package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What a set-up has left beside the repository's files is in each new clone, for its runs to change. It is left out
// where it would be published.
func TestFilesOfAnEnvironment(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{".gitignore": "*.so\n", "a/x.c": "x"})
	o.commit("plain", map[string]string{".gitignore": "x\n"})
	o.commit("tracked", map[string]string{".gitignore": "", "a/x.so": "tracked"})
	o.commit("listed", map[string]string{".gitignore": "", "a/x.so": "", "a/x.so/y": "y"})
	w := o.files()
	layers := func(thread, ref, id string) Clone {
		t.Helper()
		c, err := w.Checkout(t.Context(), Want{Thread: thread, Repo: "acme/api", Ref: ref, Keep: true})
		if err != nil {
			t.Fatal(err)
		}
		e, release, err := EnvironmentsOf(w).Use(t.Context(), c, id,
			func(_ context.Context, c Clone, home Layer) error {
				if err := os.MkdirAll(filepath.Join(home.Changes, "upper"), 0o700); err != nil {
					return err
				}
				if err := os.Symlink("/etc/passwd", filepath.Join(c.Dir, "link.so")); err != nil {
					return err
				}
				return os.WriteFile(filepath.Join(c.Dir, "a", "x.so"), []byte(id), 0o700)
			})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if _, err := EnvironmentsOf(w).Layers(t.Context(), c, e); err != nil {
			t.Fatal(err)
		}
		return c
	}
	text := func(c Clone) string {
		data, err := os.ReadFile(filepath.Join(c.Dir, "a", "x.so"))
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	c := layers("a", "main", "one")
	info, err := os.Stat(filepath.Join(c.Dir, "a", "x.so"))
	if err != nil || info.Mode().Perm() != 0o700 || text(c) != "one" || exists(filepath.Join(c.Dir, "link.so")) {
		t.Errorf("the clone has %s, %v %v", text(c), info, err)
	}
	write(t, filepath.Join(c.Dir, "a", "x.so"), "changed")
	if got := text(layers("a", "main", "one")); got != "changed" {
		t.Errorf("the next run of the thread sees %q", got)
	}
	if got := text(layers("b", "main", "one")); got != "one" {
		t.Errorf("another thread sees %q", got)
	}
	if got := text(layers("a", "main", "two")); got != "two" {
		t.Errorf("with another environment, the thread sees %q", got)
	}
	for _, ref := range []string{"tracked", "listed", "plain"} {
		if status := testGit(t, layers(ref, ref, "one").Dir, "status", "--porcelain"); status != "" {
			t.Errorf("on %s, the clone has %q", ref, status)
		}
	}
}

// Of too many files, the last by name are left out.
func TestTooManyFilesOfAnEnvironment(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	var names []string
	for i := range maxEnvironmentFiles + 1 {
		names = append(names, fmt.Sprintf("%03d.so", i))
		write(t, filepath.Join(from, names[i]), "x")
	}
	e := Environment{dir: t.TempDir()}
	if err := e.takeFiles(from, names); err != nil || !slices.Equal(e.Files, names[:maxEnvironmentFiles]) {
		t.Errorf("%d files, %v", len(e.Files), err)
	}
	if e.Size != maxEnvironmentFiles {
		t.Errorf("%d bytes", e.Size)
	}
}
