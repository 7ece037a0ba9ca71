package dirtree_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/dirtree"
	"github.com/errand-fleet/errand/internal/nobody"
)

// write writes files below dir. The content of a link begins with "-> ".
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if target, link := strings.CutPrefix(content, "-> "); link {
			err = errors.Join(err, os.Symlink(target, name))
		} else {
			err = errors.Join(err, os.WriteFile(name, []byte(content), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func chmod(mode fs.FileMode, paths ...string) (err error) {
	for _, path := range paths {
		err = errors.Join(err, os.Chmod(path, mode))
	}
	return err
}

func TestRemoveTakesDirectoriesWithoutPermissions(t *testing.T) {
	t.Parallel()
	for _, mode := range []fs.FileMode{0o500, 0o300, 0} {
		for _, last := range [][]string{nil, {"mark"}} {
			dir, kept := filepath.Join(t.TempDir(), "mod"), t.TempDir()
			deep := dir + "/a/" + strings.Repeat("d/", 100)
			write(t, dir, map[string]string{"a/b/file": "x", "a/b/link": "-> " + kept, "mark": "x"})
			write(t, deep, map[string]string{"file": "x"})
			write(t, kept, map[string]string{"file": "x"})
			err := nobody.Call(t, dir, func() error {
				for at := filepath.Clean(deep); at != dir+"/a"; at = filepath.Dir(at) {
					if err := chmod(mode, at); err != nil {
						return err
					}
				}
				if err := chmod(mode, dir+"/a/b", dir+"/a", dir); err != nil {
					return err
				}
				if err := os.RemoveAll(dir); !errors.Is(err, fs.ErrPermission) {
					return errors.New("the directory has permissions: the test would prove nothing")
				}
				return dirtree.Remove(dir, last...)
			})
			if err != nil || exists(dir) || !exists(kept+"/file") {
				t.Errorf("%o: error %v, removed %v, link target kept %v", mode, err, !exists(dir), exists(kept+"/file"))
			}
		}
	}
}

// However deeply directories are nested, few of them are open at once. Otherwise a tool could take all of the worker's
// descriptors for a while, and its directories would stay.
func TestRemoveHoldsFewDirectoriesOpen(t *testing.T) {
	t.Parallel()
	const variable = "ERRAND_TEST_REMOVE"
	if dir := os.Getenv(variable); dir != "" {
		if err := dirtree.Remove(dir, "mark"); err != nil {
			t.Fatalf("%.500s", err.Error())
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "dir")
	write(t, dir, map[string]string{"mark": "x"})
	at, err := os.OpenRoot(dir)
	for range 2000 {
		if err != nil {
			t.Fatal(err)
		}
		parent := at
		err = errors.Join(parent.Mkdir("d", 0o700), parent.WriteFile("file", nil, 0o400))
		if err == nil {
			at, err = parent.OpenRoot("d")
		}
		err = errors.Join(err, parent.Close())
	}
	_ = at.Close()
	cmd := exec.CommandContext(t.Context(), "sh", "-c",
		`ulimit -n 300; exec "$0" -test.run='^TestRemoveHoldsFew'`, os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || exists(dir) {
		t.Errorf("%v, removed %v: %s", err, !exists(dir), out)
	}
}

// A link that cannot be removed from a read-only directory is not followed.
func TestRemoveFollowsNoLink(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	write(t, root, map[string]string{"outside/x": "x", "clone/.git": "-> ../outside"})
	err := nobody.Call(t, root, func() error {
		if err := chmod(0o500, root+"/outside", root+"/clone"); err != nil {
			return err
		}
		return errors.Join(dirtree.Remove(root+"/clone/.git"), dirtree.Permit(root+"/clone/.git"))
	})
	if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("removed: %v", err)
	}
	if info, err := os.Stat(root + "/outside"); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v, %v", info, err)
	}
}

// What marks a directory stays while something else does.
func TestRemoveLast(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root can leave a file of another user
	}
	dir := filepath.Join(t.TempDir(), "dir")
	write(t, dir, map[string]string{"a/file": "x", "mark": "x", "b": "x"})
	if err := os.Mkdir(dir+"/empty", 0o700); err != nil {
		t.Fatal(err)
	}
	err := nobody.Call(t, dir, func() error {
		given := make(chan error)
		go func() { given <- errors.Join(os.Lchown(dir+"/a", 0, 0), os.Lchown(dir+"/empty", 0, 0)) }() // as root
		return errors.Join(<-given, dirtree.Remove(dir, "mark"))
	})
	if !errors.Is(err, fs.ErrPermission) || exists(dir+"/empty") || !exists(dir+"/a/file") || exists(dir+"/b") ||
		!exists(dir+"/mark") {
		t.Errorf("error %v, a %v, b %v, mark %v", err, exists(dir+"/a"), exists(dir+"/b"), exists(dir+"/mark"))
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	dir, outside := filepath.Join(t.TempDir(), "dir"), t.TempDir()
	write(t, dir, map[string]string{"a/b/file": "x", "c/file": "x", "d/link": "-> " + outside})
	write(t, outside, map[string]string{"file": "x"})
	files := 0
	count := func(parent *os.Root, e fs.DirEntry) error {
		if info, err := parent.Lstat(e.Name()); err == nil && info.Mode().IsRegular() {
			files++
		}
		return nil
	}
	err := nobody.Call(t, dir, func() error {
		if err := errors.Join(chmod(0o300, dir+"/a/b"), chmod(0o400, dir+"/a"), chmod(0, dir+"/c", dir)); err != nil {
			return err
		}
		return dirtree.Walk(dir, 3, count)
	})
	if err != nil || files != 2 {
		t.Errorf("found %d files, %v", files, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("the directory is left as %v, %v", info.Mode(), err)
	}
	if err := dirtree.Walk(dir, 1, count); !errors.Is(err, dirtree.ErrTooDeep) {
		t.Errorf("walked: %v", err)
	}
}

// A directory that another process changes or replaces while it is read stays as that process leaves it.
func TestWalkKeepsChanges(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dir")
	write(t, dir, map[string]string{"changed/file": "x", "replaced/file": "x", "same/file": "x"})
	err := nobody.Call(t, dir, func() error {
		if err := chmod(0, dir+"/changed", dir+"/replaced", dir+"/same"); err != nil {
			return err
		}
		return dirtree.Walk(dir, 9, func(parent *os.Root, e fs.DirEntry) error {
			switch in := filepath.Base(parent.Name()); {
			case e.IsDir():
				return nil
			case in == "changed":
				return os.Chmod(dir+"/changed", 0o750)
			case in == "replaced":
				return errors.Join(os.Rename(dir+"/replaced", dir+"/moved"), os.Mkdir(dir+"/replaced", 0o700))
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"changed": 0o750, "replaced": 0o700, "same": 0} {
		if info, err := os.Stat(dir + "/" + name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is left as %v, %v", name, info.Mode(), err)
		}
	}
}
