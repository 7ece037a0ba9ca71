package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// fileSteps are the maximum file sizes that Snapshot tries, until the result is small enough. 0 means no files.
var fileSteps = []int64{maxHeld, 1 << 20, 64 << 10, 0}

// Snapshot packs what c holds and its mirror lacks into at most limit bytes: the commits of local branches and of the
// stash, the index, and the files that differ from the index, including untracked but not ignored files. If that is
// too large, it leaves out large files, then all files, and lists them in Bundle.Missing. If the commits are too large
// by themselves, it returns an error.
//
// An agent may run in c meanwhile. Snapshot does not disturb it and executes nothing that it wrote: git works in a
// copy of its git directory with errand's configuration, and files are read byte by byte, without following links. The
// bundle may or may not contain a change that happens meanwhile.
func (w *Workspace) Snapshot(ctx context.Context, c Clone, limit int) (Bundle, error) {
	b, err := w.snapshot(ctx, c, limit)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errLong) {
		b, err = w.snapshot(ctx, c, limit) // the agent may just have packed what we were reading
	}
	if errors.Is(err, errLong) {
		err = fmt.Errorf("it is too large: %w", err)
	}
	if err != nil {
		return Bundle{}, fmt.Errorf("snapshot %s: %w", c.Repo, err)
	}
	return b, nil
}

func (w *Workspace) snapshot(ctx context.Context, c Clone, limit int) (Bundle, error) {
	own, release, err := w.reach(ctx, c)
	if err != nil {
		return Bundle{}, err
	}
	defer release()
	s, err := newShadow(ctx, own, latest)
	if err != nil {
		return Bundle{}, err
	}
	defer s.remove()

	b, err := s.describe(ctx)
	if err != nil {
		return Bundle{}, err
	}
	b.Repo = c.Repo
	return s.bundle(ctx, b, limit)
}

// reach locks the thread that c belongs to, until release is called.
func (w *Workspace) reach(ctx context.Context, c Clone) (_ clone, release func(), _ error) {
	if err := checkRepo(c.Repo); err != nil {
		return clone{}, nil, err
	}
	thread, found := strings.CutSuffix(c.Dir, filepath.FromSlash("/repos/"+c.Repo))
	if !found || filepath.Dir(thread) != filepath.Join(w.cfg.Dir, "threads") {
		return clone{}, nil, errors.New("it is no clone of this workspace")
	}
	return w.lockClone(ctx, thread, c)
}

// lockClone locks a thread by its directory, until release is called.
func (w *Workspace) lockClone(ctx context.Context, thread string, c Clone) (_ clone, release func(), _ error) {
	held, err := lock(ctx, thread+".lock")
	if err != nil {
		return clone{}, nil, err
	}
	m := w.mirror(c.Repo)
	m.git = m.git.holding(held)
	return m.clone(c.Dir), func() { unlock(held) }, nil
}

// maxRefs bounds the local branches. A clone starts with one.
const maxRefs = 1000

// describe returns a bundle with the fields that the refs determine.
func (s *shadow) describe(ctx context.Context) (b Bundle, err error) {
	if b.Head, err = s.rev(ctx, "HEAD^{commit}"); err != nil {
		return b, err
	}
	name, err := s.git.run(ctx, "rev-parse", "--symbolic-full-name", "HEAD")
	if err != nil {
		return b, err
	}
	if branch, found := strings.CutPrefix(strings.TrimSpace(name), "refs/heads/"); found {
		b.Branch = branch
	}
	out, err := s.git.run(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/", "refs/stash")
	if err != nil {
		return b, err
	}
	b.Refs = map[string]string{}
	for line := range strings.Lines(out) {
		sha, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		b.Refs[name] = sha
	}
	if len(b.Refs) > maxRefs {
		return b, fmt.Errorf("it has %d branches", len(b.Refs))
	}
	return b, nil
}

// bundle packs what b describes, and as much of the index and the files as fits.
func (s *shadow) bundle(ctx context.Context, b Bundle, limit int) (Bundle, error) {
	changed, err := s.changes(ctx)
	if err != nil {
		return b, err
	}
	for step := 0; step < len(fileSteps); {
		if b, err = s.attempt(ctx, b, changed, fileSteps[step], limit); !errors.Is(err, errLong) {
			return b, err
		}
		if !changed.staged {
			step++
			continue
		}
		// The index may be too large. Without it, all changes are in the work tree's files.
		if err := s.unstage(ctx); err != nil {
			return b, err
		}
		if changed, err = s.changes(ctx); err != nil {
			return b, err
		}
	}
	return b, err
}

// attempt makes a bundle with files up to the given size. It returns errLong if the bundle is too large.
func (s *shadow) attempt(ctx context.Context, b Bundle, c changes, most int64, limit int) (_ Bundle, err error) {
	var missing []string
	if b.Work, missing, err = s.commit(ctx, b.Head, c, most, maxRaw); err != nil {
		return b, err
	}
	if b.Data, err = s.pack(ctx, b, limit); err != nil {
		return b, err
	}
	b.Sum, b.Missing = sum(b.Data), slices.Concat(s.unfinished, short(missing))
	return b, nil
}

// pack returns the git bundle of what b names and the mirror lacks, or nil if it lacks nothing. Other mirrors have, or
// can fetch, what this one has.
func (s *shadow) pack(ctx context.Context, b Bundle, limit int) ([]byte, error) {
	args := []string{"HEAD"}
	if b.Work != "" {
		args = append(args, workRef)
	}
	for name := range b.Refs {
		args = append(args, name)
	}
	args = append(args, "--not", "--alternate-refs")
	any, err := s.git.run(ctx, append([]string{"rev-list", "--max-count=1"}, args...)...)
	if err != nil || any == "" {
		return nil, err
	}
	g := s.git
	g.limit = limit
	data, err := g.run(ctx, append([]string{"bundle", "create", "--quiet", "-"}, args...)...)
	return []byte(data), err
}
