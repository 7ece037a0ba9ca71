package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A new clone reuses the files of the previous clone, because writing them takes most of the time. It trusts nothing
// else of it: the old git directory is discarded, and every file that is not in errand's copy of the index is removed.
// With that copy git finds the files that were changed. An agent can restore a file's times and size, but not its
// ctime or inode.

// remember copies the index right after the checkout to a place that no agent can write. The copy keeps its time,
// because git reads files again that were written at that same moment.
func (c clone) remember() error {
	from := filepath.Join(c.dir, ".git", "index")
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	beside, err := os.OpenRoot(filepath.Dir(c.index))
	if err != nil {
		return err
	}
	defer beside.Close()
	name := filepath.Base(c.index)
	if err := put(beside, name, string(data)); err != nil {
		return err
	}
	return beside.Chtimes(name, info.ModTime(), info.ModTime())
}

// renew is make that reuses the files of the previous clone if possible. After an error the clone may be gone.
func (c clone) renew(ctx context.Context, want Want, t tip, fill func(clone) error) (Clone, error) {
	return c.make(ctx, want, t, func(made clone) error {
		if err := made.inherit(ctx, c); err != nil {
			return fmt.Errorf("take over files: %w", err)
		}
		return fill(made)
	})
}

// inherit moves the files of old into c, which has none; old is then no longer a clone. c keeps its git directory and
// gets old's remembered index.
func (c clone) inherit(ctx context.Context, old clone) error {
	if fi, err := os.Lstat(old.dir); err != nil || !fi.IsDir() {
		return errors.Join(err, errNoDir)
	}
	aside := old.beside("old")
	if err := removeAll(aside); err != nil {
		return err
	}
	if err := os.Rename(old.dir, aside); err != nil {
		return err
	}
	if err := removeAll(filepath.Join(aside, ".git")); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(c.dir, ".git"), filepath.Join(aside, ".git")); err != nil {
		return err
	}
	if err := os.Remove(c.dir); err != nil {
		return err
	}
	if err := os.Rename(aside, c.dir); err != nil {
		return err
	}
	if err := os.Rename(old.index, filepath.Join(c.dir, ".git", "index")); err != nil {
		return err
	}
	return c.clean(ctx)
}

var errNoDir = errors.New("not a directory")

// clean removes everything that is not in the index. git clean is not suitable: it leaves pipes and sockets, reads the
// ignore files and attributes that it is about to remove, and hangs if one of them is a pipe.
func (c clone) clean(ctx context.Context) error {
	out, err := c.git.run(ctx, "ls-files", "-z")
	if err != nil {
		return err
	}
	files, dirs := map[string]bool{}, map[string]bool{".": true}
	for name := range strings.SplitSeq(out, "\x00") {
		files[name] = true
		for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git":
			return fs.SkipDir
		case d.IsDir() && dirs[name]:
			return nil
		case (d.Type().IsRegular() || d.Type() == fs.ModeSymlink) && files[name]:
			return nil
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}
