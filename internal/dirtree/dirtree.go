// Package dirtree removes and reads directories that an agent may have written to. It follows none of their links, and
// a directory without permissions neither stays nor hides what is in it.
//
// Functions may be called from any goroutine.
package dirtree

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// batch is the number of entries of a directory that are read at once.
const batch = 1024

// ErrTooDeep ends a walk of directories that are nested deeper than they may be.
var ErrTooDeep = errors.New("directories are nested too deep")

// Remove is os.RemoveAll that also removes directories without permissions, such as those of Go's module cache, and
// holds only some directories open, however deeply they are nested. The entries of dir that are called last go when all
// others are gone, so that until then they mark dir as what it is.
func Remove(dir string, last ...string) error {
	if filepath.Base(dir) == "." { // or dir is empty
		return fs.ErrInvalid
	}
	err := from(dir, func(parent *os.Root, info fs.FileInfo) error {
		return (&remover{last: last}).entry(parent, fs.FileInfoToDirEntry(info), 0)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// maxOpen is the number of directories, one in another, that Remove holds open.
const maxOpen = 64

// remover removes one directory.
type remover struct {
	last  []string // entries of top that go when all others are gone
	top   *os.Root // the directory
	moved int      // directories below it that have become entries of top
}

// empty removes the entries of a directory below others, except those called keep.
func (r *remover) empty(dir *os.Root, keep []string, above int) error {
	for {
		moved := r.moved
		removed, err := r.entries(dir, keep, above)
		if err != nil || removed < batch && r.moved == moved {
			return err
		}
	}
}

// entries does so for the entries that it finds in one reading. The removal of many can hide others from it.
func (r *remover) entries(dir *os.Root, keep []string, above int) (removed int, failed error) {
	f, err := dir.Open(".")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for {
		list, err := f.ReadDir(batch)
		for _, e := range list {
			if slices.Contains(keep, e.Name()) {
				continue
			}
			if err := r.entry(dir, e, above+1); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = err
			}
			removed++
		}
		if err != nil {
			return removed, failed
		}
	}
}

func (r *remover) entry(parent *os.Root, e fs.DirEntry, above int) error {
	if !e.IsDir() {
		return parent.Remove(e.Name())
	}
	dir, err := open(parent, e.Name())
	if err != nil {
		if parent.Remove(e.Name()) == nil { // another user's, and empty
			return nil
		}
		return err
	}
	defer dir.Close()
	if above > maxOpen {
		r.moved++
		old := strings.TrimPrefix(dir.Name(), r.top.Name()+string(filepath.Separator))
		return r.top.Rename(old, "errand-"+strconv.FormatUint(rand.Uint64(), 36))
	}
	if above == 0 {
		r.top = dir
		if err := r.empty(dir, r.last, 0); err != nil {
			return err
		}
	}
	if err := r.empty(dir, nil, above); err != nil {
		return err
	}
	return parent.Remove(e.Name())
}

// open opens a directory that is to be removed, with all permissions for this user. It follows no link.
func open(parent *os.Root, name string) (*os.Root, error) {
	info, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		_ = parent.Chmod(name, 0o700) // otherwise it is another user's
	}
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := dir.Stat("."); err != nil || !os.SameFile(opened, info) {
		_ = dir.Close()
		return nil, fmt.Errorf("open %s: it was replaced", name)
	}
	return dir, nil
}

// Walker is a function like [Walk].
type Walker = func(dir string, depth int, visit func(parent *os.Root, e fs.DirEntry) error) error

// Walk calls visit for dir and each entry below it, for a directory before it is read. It makes directories without
// permissions readable while it reads them, and leaves out what vanishes meanwhile and what is another user's. Modes
// that others set meanwhile stay. A directory below more than depth others ends the walk with ErrTooDeep.
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
	if above > w.depth {
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
