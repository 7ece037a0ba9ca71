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
)

// Mirror describes the mirror of one repository.
type Mirror struct {
	Repo string
	Used time.Time // when it was last updated
	Size int64     // bytes of its files
}

// Mirrors lists all mirrors. It reads every directory, as Threads does.
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
			size := int64(0)
			for _, path := range m.parts() {
				size += diskSize(ctx, path)
			}
			all = append(all, Mirror{Repo: repo, Used: m.fetched(), Size: size})
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("list mirrors: %w", context.Cause(ctx))
	}
	return all, nil
}

// mirrorExts are the extensions of a mirror's files and directories. The mirror itself is last.
var mirrorExts = []string{".broken", ".tmp", ".fetched", ".git"}

// parts returns everything to remove with a mirror, the mirror itself last: if the removal is interrupted, the rest is
// still listed.
func (m mirror) parts() []string {
	return []string{m.beside("broken"), m.beside("tmp"), m.beside("fetched"), m.dir}
}

// DiscardMirror moves a mirror to the trash, for Empty to remove. It returns false and keeps the mirror if a clone
// borrows from it, it was used since it was listed, or it has commits of ours that are on no branch of the remote.
func (w *Workspace) DiscardMirror(ctx context.Context, gone Mirror) (bool, error) {
	discarded, err := w.discardMirror(ctx, gone)
	if err != nil {
		return false, fmt.Errorf("discard mirror of %s: %w", gone.Repo, err)
	}
	return discarded, nil
}

func (w *Workspace) discardMirror(ctx context.Context, gone Mirror) (bool, error) {
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
	if err := os.MkdirAll(w.trash(), 0o700); err != nil {
		return false, err
	}
	for _, path := range m.parts() {
		if err := os.Rename(path, filepath.Join(w.trash(), rand.Text())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// holdsOurs reports whether the mirror has commits of ours that are on no branch of the remote.
func (m mirror) holdsOurs(ctx context.Context) (bool, error) {
	if !exists(m.dir) {
		return false, nil // the rest of a mirror that was set aside or partly discarded
	}
	if err := secure(m.dir, mirrorConfig, ""); err != nil {
		return false, err
	}
	ours, err := m.git.run(ctx, "rev-list", "--max-count=1", "--glob=refs/errand", "--not", "--branches", "--tags", "--glob=refs/pull")
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
		if !strings.HasSuffix(thread, ".lock") {
			names, err := list(filepath.Join(root, thread, "repos", owner))
			if err != nil {
				return false, err
			}
			for _, n := range names {
				if beside := besideClone.FindStringSubmatch(n); n == name || beside != nil && beside[1] == name && beside[2] != "index" {
					return true, nil
				}
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
