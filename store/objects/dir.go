package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Dir is a bucket below a directory.
type Dir struct {
	root   *os.Root
	shared bool
}

// OpenDir returns a bucket below a directory, and creates the directory if necessary. shared says that all machines of
// the fleet have mounted the same one.
func OpenDir(dir string, shared bool) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create object directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open object directory: %w", err)
	}
	d := &Dir{root: root, shared: shared}
	probe, err := d.create(".")
	if err != nil {
		return nil, fmt.Errorf("object directory %s cannot be written: %w", dir, errors.Join(err, root.Close()))
	}
	if err := errors.Join(probe.Close(), root.Remove(probe.name)); err != nil {
		return nil, fmt.Errorf("object directory %s cannot be written: %w", dir, errors.Join(err, root.Close()))
	}
	return d, nil
}

// Shared implements Bucket.
func (d *Dir) Shared() bool { return d.shared }

// Close releases the directory.
func (d *Dir) Close() error { return d.root.Close() }

// temporary begins the names of files that are being written.
const temporary = ".new-"

type newFile struct {
	*os.File
	name string
}

// create creates a file with a new name in a directory, which it creates if necessary.
func (d *Dir) create(parent string) (*newFile, error) {
	if err := d.root.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	name := path.Join(parent, temporary+randomName())
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return &newFile{f, name}, err
}

// Put implements Bucket. The value is on the disk when Put returns.
func (d *Dir) Put(ctx context.Context, key string, data io.Reader, size int64) error {
	if err := d.put(ctx, key, data, size); err != nil {
		return fmt.Errorf("put object %s: %w", key, err)
	}
	return nil
}

func (d *Dir) put(ctx context.Context, key string, data io.Reader, size int64) error {
	if err := checkKey(key); err != nil {
		return err
	}
	f, err := d.create(path.Dir(key))
	if errors.Is(err, fs.ErrNotExist) { // Sweep has removed the empty directory
		f, err = d.create(path.Dir(key))
	}
	if err != nil {
		return err
	}
	err = errors.Join(f.write(reader{ctx, data}, size), f.Close())
	if err == nil {
		err = d.root.Rename(f.name, key)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(f.name))
	}
	return nil
}

// write writes data of a size, or of any size below 0, to the disk.
func (f *newFile) write(data io.Reader, size int64) error {
	n, err := io.Copy(f, data)
	if err != nil {
		return err
	}
	if size >= 0 && n != size {
		return fmt.Errorf("it has %d bytes instead of %d", n, size)
	}
	return f.Sync()
}

// Get implements Bucket.
func (d *Dir) Get(_ context.Context, key string) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("get object %s: %w", key, err)
	}
	f, err := d.root.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get object %s: %w", key, err)
	}
	return f, nil
}

// Delete implements Bucket.
func (d *Dir) Delete(_ context.Context, key string) error {
	err := checkKey(key)
	if err == nil {
		err = d.root.Remove(key)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete object %s: %w", key, err)
	}
	return nil
}

// Sweep removes values that are older than age, unfinished files that are older than an hour, and directories that
// have become empty. It returns the number of removed values and continues after errors.
func (d *Dir) Sweep(ctx context.Context, age time.Duration) (removed int, err error) {
	now := time.Now()
	var errs []error
	var dirs []string
	_ = fs.WalkDir(d.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // another machine sweeps, too
				errs = append(errs, err)
			}
			return nil
		}
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			return fs.SkipAll
		}
		if e.IsDir() {
			dirs = append(dirs, name)
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // it has been removed meanwhile
		}
		limit, partial := age, strings.HasPrefix(e.Name(), temporary)
		if partial {
			limit = min(age, time.Hour)
		}
		if now.Sub(info.ModTime()) < limit {
			return nil
		}
		if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		} else if !partial {
			removed++
		}
		return nil
	})
	for i := len(dirs) - 1; i > 0; i-- { // the deepest first; the first is the root
		_ = d.root.Remove(filepath.FromSlash(dirs[i])) // fails unless it is empty
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("sweep objects: %w", err)
	}
	return removed, nil
}

// reader stops when its context ends.
type reader struct {
	ctx  context.Context //nolint:containedctx // of one call of Put
	data io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.data.Read(p)
}
