package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Thread is what one thread has here: clones, files, scratch.
type Thread struct {
	Name string
	Dir  string
	Used time.Time // when a run in it began or was left last
	Size int64     // bytes of its files
}

// Alone calls do, unless another process is in its own on this root: false then. What it does is clearing up, and one at a time suffices.
func (w *Workspace) Alone(do func() error) (bool, error) {
	held, err := tryLock(filepath.Join(w.cfg.Dir, "janitor.lock"))
	if held == nil || err != nil {
		return false, err
	}
	defer unlock(held)
	return true, do()
}

// Threads lists those that Enter or Files have named. It reads every directory, which takes a while where there are many.
func (w *Workspace) Threads(ctx context.Context) ([]Thread, error) {
	dir := filepath.Join(w.cfg.Dir, "threads")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	var all []Thread
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("list threads: %w", context.Cause(ctx))
		}
		path := filepath.Join(dir, e.Name())
		name, err := os.ReadFile(filepath.Join(path, nameFile))
		if err != nil || w.threadDir(string(name)) != path {
			continue // a lock, or something whose thread nobody can tell
		}
		all = append(all, Thread{Name: string(name), Dir: path, Used: used(path), Size: diskSize(ctx, path)})
	}
	return all, nil
}

// Discard takes a thread's directories away, to be removed by Empty; false when somebody has used them since they were listed. The caller
// sees to it that no run begins in them meanwhile.
func (w *Workspace) Discard(ctx context.Context, t Thread) (bool, error) {
	dir := w.threadDir(t.Name)
	held, err := lock(ctx, dir+".lock")
	if err != nil {
		return false, fmt.Errorf("discard thread: %w", err)
	}
	defer unlock(held)
	if !used(dir).Equal(t.Used) {
		return false, nil
	}
	trash := w.trash()
	if err := os.MkdirAll(trash, 0o700); err != nil {
		return false, fmt.Errorf("discard thread: %w", err)
	}
	if err := os.Rename(dir, filepath.Join(trash, rand.Text())); err != nil {
		return false, fmt.Errorf("discard thread: %w", err)
	}
	return true, nil
}

// Empty removes what was discarded, by a process that was killed before it came to this as well.
func (w *Workspace) Empty() error {
	if err := removeAll(w.trash()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove discarded threads: %w", err)
	}
	return nil
}

func (w *Workspace) trash() string { return filepath.Join(w.cfg.Dir, "trash") }

// nameFile holds the thread's name, which its directory's own does not tell. It changes when a run begins.
const nameFile = ".thread"

// name makes the thread's directory and notes whose it is; begun says that a run begins.
func (w *Workspace) name(thread string, begun bool) error {
	file := filepath.Join(w.threadDir(thread), nameFile)
	if !begun && exists(file) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(thread), 0o600)
}

// used is when a run began in a thread's directory or was left there last; the zero time when nobody can tell.
func used(dir string) (last time.Time) {
	for _, name := range []string{nameFile, leftName} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// diskSize adds up files, without following links.
func diskSize(ctx context.Context, dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read, or is gone by now, does not count
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return ctx.Err()
	})
	return total
}
