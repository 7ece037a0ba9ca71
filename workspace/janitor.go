package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// Thread describes the directories of one thread: clones, files, scratch.
type Thread struct {
	Name string
	Dir  string
	Used time.Time // when a run last began or ended in it
	Size int64     // bytes of its files
}

// Alone calls do unless another process is in Alone on the same root; then it returns false. One clean-up at a time is
// enough.
func (w *Workspace) Alone(do func() error) (bool, error) {
	held, err := tryLock(filepath.Join(w.cfg.Dir, "janitor.lock"))
	if held == nil || err != nil {
		return false, err
	}
	defer unlock(held)
	return true, do()
}

// Threads lists the threads that Enter or Files have named. It reads the directories of those that were
// used since the last time, which may take long.
func (w *Workspace) Threads(ctx context.Context) (all []Thread, err error) {
	defer wrap(&err, "list threads")
	dir := filepath.Join(w.cfg.Dir, "threads")
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		path := filepath.Join(dir, name)
		name, err := os.ReadFile(filepath.Join(path, nameFile))
		if err != nil || w.threadDir(string(name)) != path {
			continue // a lock, or a directory without a name
		}
		last := used(path)
		all = append(all, Thread{Name: string(name), Dir: path, Used: last, Size: threadSize(ctx, path, last)})
	}
	return all, nil
}

// Discard moves a thread's directories to the trash, for Empty to remove. It returns false if they were used since
// they were listed. The caller must ensure that no run begins in them meanwhile.
func (w *Workspace) Discard(ctx context.Context, t Thread) (_ bool, err error) {
	defer wrap(&err, "discard thread")
	dir := w.threadDir(t.Name)
	held, err := lock(ctx, dir+".lock")
	if err != nil {
		return false, err
	}
	defer unlock(held)
	if !used(dir).Equal(t.Used) {
		return false, nil
	}
	err = throwAway(w, dir)
	return err == nil, err
}

// Empty removes everything in the trash, and the environments that killed processes have left incomplete.
func (w *Workspace) Empty() (err error) {
	defer wrap(&err, "remove discarded directories")
	err = EnvironmentsOf(w).removeIncomplete()
	if trash := dirtree.Remove(w.trash()); !errors.Is(trash, fs.ErrNotExist) {
		err = errors.Join(err, trash)
	}
	return err
}

// throwAway moves a file or directory to the trash.
func throwAway(w *Workspace, path string) error {
	if err := os.MkdirAll(w.trash(), 0o700); err != nil {
		return err
	}
	return os.Rename(path, filepath.Join(w.trash(), rand.Text()))
}

func (w *Workspace) trash() string { return filepath.Join(w.cfg.Dir, "trash") }

// nameFile holds the thread's name, which cannot be derived from its directory. Its time changes when a run begins.
const nameFile = ".thread"

// name creates the thread's directory and stores the thread's name. begun means that a run begins.
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

// used returns when a run last began or ended in a thread's directory, or the zero time if unknown.
func used(dir string) (last time.Time) {
	for _, name := range []string{nameFile, leftName} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// Mirror describes the mirror of one repository.
type Mirror struct {
	Repo string
	Used time.Time // when it was last updated
	Size int64     // bytes of its files
}

// Mirrors lists all mirrors. It measures them as Threads does.
func (w *Workspace) Mirrors(ctx context.Context) ([]Mirror, error) {
	root := filepath.Join(w.cfg.Dir, "mirrors")
	owners, err := list(root)
	if err != nil {
		return nil, err
	}
	var all []Mirror
	for _, owner := range owners {
		names, err := list(filepath.Join(root, owner))
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, file := range names {
			name := strings.TrimSuffix(file, filepath.Ext(file))
			repo := repoAt(owner, name)
			if !slices.Contains(mirrorExts, filepath.Ext(file)) || seen[name] || checkRepo(repo) != nil {
				continue
			}
			seen[name] = true
			m := w.mirror(repo)
			all = append(all, Mirror{Repo: repo, Used: m.fetched(), Size: m.size(ctx)})
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("list mirrors: %w", context.Cause(ctx))
	}
	return all, nil
}

// mirrorExts are the extensions of what belongs to a mirror. The mirror itself is last: if a removal is interrupted,
// the rest is still listed.
var mirrorExts = []string{".broken", ".tmp", ".size", ".fetched", ".git"}

// DiscardMirror moves a mirror to the trash, for Empty to remove. It returns false and keeps the mirror if a clone
// borrows from it, it was used since it was listed, or it has our commits that are on no branch of the remote.
func (w *Workspace) DiscardMirror(ctx context.Context, gone Mirror) (_ bool, err error) {
	defer wrap(&err, "discard mirror of %s", gone.Repo)
	m := w.mirror(gone.Repo)
	held, err := tryLock(m.beside("use")) // prevents new clones of the mirror
	if held == nil || err != nil {
		return false, err
	}
	defer unlock(held)
	m.git = m.git.holding(held)
	if used, err := m.borrowed(); used || err != nil || !m.fetched().Equal(gone.Used) {
		return false, err
	}
	if ours, err := m.holdsOurs(ctx); ours || err != nil {
		return false, err
	}
	for _, ext := range mirrorExts {
		if err := throwAway(w, m.beside(ext[1:])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// holdsOurs reports whether the mirror has our commits that are on no branch of the remote. Originals do not count:
// what the remote gets is their signed copies.
func (m mirror) holdsOurs(ctx context.Context) (bool, error) {
	if !exists(m.dir) {
		return false, nil // the rest of a mirror that was set aside or partly discarded
	}
	if err := secure(m.dir, mirrorConfig, ""); err != nil {
		return false, err
	}
	ours, err := m.git.run(ctx, "rev-list", "--max-count=1", "--exclude="+originals+"*", "--glob=refs/errand", "--not",
		"--branches", "--tags", "--glob=refs/pull")
	return ours != "", err
}

// borrowed reports whether any thread has a clone of the repository, including one that is set aside.
func (m mirror) borrowed() (bool, error) {
	root := filepath.Join(m.w.cfg.Dir, "threads")
	threads, err := list(root)
	if err != nil {
		return false, err
	}
	owner, name := repoPath(m.repo)
	for _, thread := range threads {
		if strings.HasSuffix(thread, ".lock") {
			continue
		}
		names, err := list(filepath.Join(root, thread, "repos", owner))
		if err != nil {
			return false, err
		}
		for _, n := range names {
			beside := besideClone.FindStringSubmatch(n)
			if n == name || beside != nil && beside[1] == name && beside[2] != "index" {
				return true, nil
			}
		}
	}
	return false, nil
}

// fetched returns when the last update of the mirror began, or the zero time if unknown.
func (m mirror) fetched() time.Time {
	info, err := os.Stat(m.beside("fetched"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// noteFetch records the time of an update. The caller holds the mirror's lock.
func (m mirror) noteFetch(began time.Time) error {
	name := m.beside("fetched")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return err
	}
	return os.Chtimes(name, began, began)
}
