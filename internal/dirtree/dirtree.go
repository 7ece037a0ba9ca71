// Package dirtree removes and reads directories that an agent may have written to. It follows none of their links, and
// a directory without permissions neither stays nor hides what is in it.
//
// Functions may be called from any goroutine.
package dirtree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// batch is the number of entries of a directory that are read at once.
const batch = 1024

// ErrTooDeep ends a walk of directories that are nested deeper than they may be.
var ErrTooDeep = errors.New("directories are nested too deep")

// Remove is os.RemoveAll that also removes directories without permissions, such as those of Go's module cache. The
// entries of dir that are called last go when all others are gone, so that until then they mark dir as what it is.
func Remove(dir string, last ...string) error {
	err := remove(dir, last)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = Walk(dir, 0, func(parent *os.Root, e fs.DirEntry) error {
		if e.IsDir() {
			_ = parent.Chmod(e.Name(), 0o700)
		}
		return nil
	})
	return remove(dir, last)
}

// remove removes dir as far as the permissions allow.
func remove(dir string, last []string) error {
	if info, err := os.Lstat(dir); len(last) == 0 || err != nil || !info.IsDir() {
		return os.RemoveAll(dir)
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	var failed error
	for {
		names, err := f.Readdirnames(batch)
		for _, name := range names {
			if !slices.Contains(last, name) {
				failed = errors.Join(failed, os.RemoveAll(filepath.Join(dir, name)))
			}
		}
		if err == nil {
			continue
		}
		if failed != nil {
			return failed
		}
		return os.RemoveAll(dir)
	}
}

// Walk calls visit for dir and each entry below it, for a directory before it is read. It makes directories without
// permissions readable while it reads them, and leaves out what vanishes meanwhile and what is another user's. Modes
// that others set meanwhile stay. A directory below more than depth others ends the walk with ErrTooDeep; 0: none is
// too deep.
func Walk(dir string, depth int, visit func(parent *os.Root, e fs.DirEntry) error) error {
	return from(dir, func(parent *os.Root, info fs.FileInfo) error {
		return walker{depth, visit}.entry(parent, fs.FileInfoToDirEntry(info), 0)
	})
}

// Permit gives this user all permissions for dir, unless it is a link.
func Permit(dir string) error {
	return from(dir, func(parent *os.Root, info fs.FileInfo) error {
		if !info.IsDir() {
			return fs.ErrInvalid
		}
		return parent.Chmod(info.Name(), info.Mode()|0o700)
	})
}

// from calls do with what dir is in its parent.
func from(dir string, do func(parent *os.Root, info fs.FileInfo) error) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	info, err := parent.Lstat(filepath.Base(dir))
	if err != nil {
		return err
	}
	return do(parent, info)
}

// restore gives a directory the mode that it had before it got all permissions, unless that was changed, or the
// directory replaced, since.
func restore(parent *os.Root, had fs.FileInfo) {
	now, err := parent.Lstat(had.Name())
	if err == nil && os.SameFile(now, had) && now.Mode() == had.Mode()|0o700 {
		_ = parent.Chmod(had.Name(), had.Mode())
	}
}

type walker struct {
	depth int
	visit func(parent *os.Root, e fs.DirEntry) error
}

func (w walker) entry(parent *os.Root, e fs.DirEntry, above int) error {
	if err := w.visit(parent, e); err != nil || !e.IsDir() {
		return err
	}
	if w.depth > 0 && above > w.depth {
		return ErrTooDeep
	}
	info, err := parent.Lstat(e.Name())
	if err != nil {
		return nil // it has vanished
	}
	if mode := info.Mode(); mode.Perm()&0o500 != 0o500 && parent.Chmod(e.Name(), mode|0o700) == nil {
		defer restore(parent, info) // its entries can only be found meanwhile
	}
	root, err := parent.OpenRoot(e.Name())
	if err != nil {
		return nil // likewise, or it is another user's
	}
	defer root.Close()
	f, err := root.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(batch)
		for _, e := range entries {
			if err := w.entry(root, e, above+1); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // the end, or likewise
		}
	}
}
