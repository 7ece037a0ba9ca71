package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/refname"
)

// Snapshot packs what c holds and its mirror lacks into at most limit bytes: the commits of local branches and of the
// stash, the index, and the files that differ from the index, including untracked but not ignored files. If that is
// too large, it leaves out the largest files and lists them in Bundle.Missing. If the commits are too large by
// themselves, it returns an error.
//
// An agent may run in c meanwhile. Snapshot does not disturb it and executes nothing that it wrote: git works in a
// copy of its git directory with errand's configuration, and files are read byte by byte, without following links. The
// bundle may or may not contain a change that happens meanwhile.
func (w *Workspace) Snapshot(ctx context.Context, c Clone, limit int) (b Bundle, err error) {
	defer wrap(&err, "snapshot %s", c.Repo)
	b, err = w.snapshot(ctx, c, limit)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errLong) {
		b, err = w.snapshot(ctx, c, limit) // the agent may just have packed what we were reading
	}
	if errors.Is(err, errLong) {
		return Bundle{}, fmt.Errorf("it is too large: %w", err)
	}
	return b, err
}

func (w *Workspace) snapshot(ctx context.Context, c Clone, limit int) (Bundle, error) {
	s, err := w.shadow(ctx, c, latest)
	if err != nil {
		return Bundle{}, err
	}
	defer s.remove()

	b, err := s.describe(ctx)
	if err != nil {
		return Bundle{}, err
	}
	b.Repo = c.Repo
	if b.With, err = s.clone.with(); err != nil {
		return Bundle{}, err
	}
	return s.bundle(ctx, b, limit)
}

// reach locks the thread that c belongs to, until release is called. c may have been set aside.
func (w *Workspace) reach(ctx context.Context, c Clone) (_ clone, release func(), _ error) {
	if err := checkRepo(c.Repo); err != nil {
		return clone{}, nil, err
	}
	owner, name := repoPath(c.Repo)
	thread, base := c.thread(), filepath.Base(c.Dir)
	if filepath.Dir(thread) != filepath.Join(w.cfg.Dir, "threads") ||
		filepath.Dir(c.Dir) != filepath.Join(thread, "repos", owner) || base != name && base != "."+name+"~broken" {
		return clone{}, nil, errors.New("the directory is not a clone of this workspace")
	}
	held, err := lock(ctx, thread+".lock")
	if err != nil {
		return clone{}, nil, err
	}
	m := w.mirror(c.Repo)
	m.git = m.git.holding(held)
	return m.clone(c.Dir), func() { unlock(held) }, nil
}

// thread returns the directory of the thread that c belongs to: c is in repos/OWNER in it.
func (c Clone) thread() string { return filepath.Dir(filepath.Dir(filepath.Dir(c.Dir))) }

// maxRefs bounds the local branches. A clone starts with one.
const maxRefs = 1000

// describe returns a bundle with the fields that the refs determine.
func (s *shadow) describe(ctx context.Context) (b Bundle, err error) {
	out, err := s.git.run(ctx, "for-each-ref", "--format=%(HEAD)%(objectname) %(refname)", "refs/heads/", "refs/stash")
	if err != nil {
		return b, err
	}
	b.Head, b.Refs = s.head, map[string]string{}
	for line := range strings.Lines(out) {
		sha, name, _ := strings.Cut(strings.Trim(line, " \n"), " ") // a name may have other blanks
		sha, current := strings.CutPrefix(sha, "*")
		if branch, found := strings.CutPrefix(name, "refs/heads/"); found && current { // HEAD may lead to the stash
			b.Branch = branch
		}
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
	room := []int64{maxRaw, int64(limit) * 3 / 4, int64(limit) / 4, 0} // for files, before compression
	for len(room) > 0 {
		b, err = s.attempt(ctx, b, changed, room[0], limit)
		switch {
		case !errors.Is(err, errLong):
			return b, err
		case !changed.staged:
			room = room[1:]
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

// attempt makes a bundle with as many files as there is room for. It returns errLong if the bundle is too large.
func (s *shadow) attempt(ctx context.Context, b Bundle, c changes, room int64, limit int) (_ Bundle, err error) {
	var missing []string
	if b.Work, missing, err = s.commit(ctx, c, maxHeld, room); err != nil {
		return b, err
	}
	b.Data, err = s.pack(ctx, b, limit)
	b.Sum, b.Missing = sum(b.Data), slices.Concat(s.unfinished, short(missing))
	return b, err
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

// ErrBundle means that a bundle can never be restored: it is damaged, or the repository no longer has the commits that
// it builds on.
var ErrBundle = errors.New("the work cannot be restored")

// Bundle holds what a clone had at one moment and its mirror lacked. Everything but Data is plain data, to be stored
// beside Data.
type Bundle struct {
	Repo   string            `json:"repo"`
	Head   string            `json:"head"`             // SHA checked out
	Branch string            `json:"branch,omitempty"` // checked out; empty: HEAD is detached
	Refs   map[string]string `json:"refs,omitempty"`   // local branches and the stash, by full name
	// Work is a commit of the work tree. Its parent is a commit of the index, whose parent is Head. It is empty if
	// nothing was uncommitted or the changes were too large.
	Work string `json:"work,omitempty"`
	// Missing lists what was left out: file paths, a final count of further files, and git states such as a merge or
	// flags of the index.
	Missing []string `json:"missing,omitempty"`
	With    []string `json:"with,omitempty"` // as in the Clone
	Sum     string   `json:"sum"`            // SHA-256 of Data, in hex
	Data    []byte   `json:"-"`              // a git bundle; empty if the mirror has everything
}

// maxNamed is the number of missing files that are listed by name.
const maxNamed = 50

// short shortens a list of files for readers.
func short(names []string) []string {
	if more := len(names) - maxNamed; more > 0 {
		return append(slices.Clip(names[:maxNamed]), fmt.Sprintf("%d more files", more))
	}
	return names
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// open validates a bundle and returns the commits that it requires of the mirror, and its pack, if any.
func (b Bundle) open(repo string) (needs []string, pack []byte, err error) {
	// Fields that become git arguments must have the form that Snapshot gives them.
	ok := b.Repo == repo && fullSHA.MatchString(b.Head) && (b.Work == "" || fullSHA.MatchString(b.Work))
	ok = ok && refname.Valid(b.Branch)
	tips := []string{b.Head}
	for name, sha := range b.Refs {
		ok = ok && ownRef.MatchString(name) && refname.Valid(name) && fullSHA.MatchString(sha)
		tips = append(tips, sha)
	}
	switch {
	case !ok:
		return nil, nil, fmt.Errorf("%w: it is not of %s", ErrBundle, repo)
	case b.Sum != sum(b.Data):
		return nil, nil, fmt.Errorf("%w: it is damaged", ErrBundle)
	case len(b.Data) == 0:
		return tips, nil, nil
	}
	// gitformat-bundle(5): lines "-<needed> <subject>" and "<held> <ref>", an empty one, the pack.
	header, pack, found := bytes.Cut(b.Data, []byte("\n\n"))
	lines, v2 := strings.CutPrefix(string(header), "# v2 git bundle\n")
	if !found || !v2 {
		return nil, nil, fmt.Errorf("%w: it is no git bundle", ErrBundle)
	}
	held := map[string]bool{}
	for line := range strings.Lines(lines) {
		sha, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if needed, found := strings.CutPrefix(sha, "-"); found {
			if !fullSHA.MatchString(needed) {
				return nil, nil, fmt.Errorf("%w: it is damaged", ErrBundle)
			}
			needs = append(needs, needed)
		} else {
			held[sha] = true
		}
	}
	needs = append(needs, slices.DeleteFunc(tips, func(sha string) bool { return held[sha] })...)
	slices.Sort(needs)
	return slices.Compact(needs), pack, nil
}

// Restore recreates the clone that b was made of, on any machine: its commits, branches and index, and its files, so
// that uncommitted work is uncommitted again. It ignores want.Ref. The new clone is complete before it replaces the
// thread's clone, which is then set aside or, without want.Keep, removed.
//
// ErrBundle means that b cannot be restored; then there is no clone, or the old one. Other errors are those of
// Checkout.
func (w *Workspace) Restore(ctx context.Context, want Want, b Bundle) (_ Clone, err error) {
	defer wrap(&err, "restore %s", want.Repo)
	needs, pack, err := b.open(want.Repo)
	if err != nil {
		return Clone{}, err
	}
	c, release, err := w.hold(ctx, want)
	if err != nil {
		return Clone{}, err
	}
	defer release()

	want.With = append(slices.Clip(want.With), b.With...)
	t, err := c.mirror.sync(ctx, want)
	if t.baseSHA == "" {
		return Clone{}, err
	}
	want.Strange = want.Strange || t.stray && !want.Runs
	for _, sha := range needs {
		_, err := c.mirror.sync(ctx, Want{Ref: sha, Base: want.Base, Protected: want.Protected, Strange: true})
		if errors.Is(err, ErrRef) {
			return Clone{}, fmt.Errorf("%w: commit %s no longer exists", ErrBundle, sha)
		}
		if err != nil {
			return Clone{}, err
		}
	}
	made, err := w.make(ctx, c, want, t, func(tmp clone) error {
		err := tmp.unbundle(ctx, b, pack)
		if gitFailed(err) {
			return fmt.Errorf("%w: %w", ErrBundle, err)
		}
		return err
	})
	made.Fresh = false
	return made, err
}

// unbundle checks the whole bundle and then checks it out.
func (c clone) unbundle(ctx context.Context, b Bundle, pack []byte) error {
	if len(pack) > 0 {
		g := c.git.having(bounded)
		g.stdin = bytes.NewReader(pack)
		// Strict: every object that another one names exists, and none is one that git would not create, such as a
		// file .git/config.
		if _, err := g.run(ctx, "index-pack", "--stdin", "--fix-thin", "--strict"); err != nil {
			return err
		}
	}
	var refs strings.Builder
	for name, sha := range b.Refs {
		fmt.Fprintf(&refs, "update %s %s\n", name, sha)
	}
	if _, err := c.git.reading(refs.String()).run(ctx, "update-ref", "--create-reflog", "--stdin"); err != nil {
		return err
	}
	if err := c.checkOut(ctx, b.Head, b.Branch); err != nil || b.Work == "" {
		return err
	}
	return c.overlay(ctx, b.Work)
}

// exact makes git write files byte by byte and ignore the work tree's attributes for line ends, encodings and filters.
const exact = "* -text -ident -filter !eol !working-tree-encoding\n"

// overlay applies the index and files of a snapshot to its HEAD, which is checked out.
func (c clone) overlay(ctx context.Context, work string) error {
	const attributes, other = "info/attributes", "work.index"
	index := work + "^"
	if _, err := c.git.run(ctx, "read-tree", "-m", "-u", "HEAD", index); err != nil {
		return err
	}
	root, err := os.OpenRoot(c.git.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := put(root, attributes, exact); err != nil {
		return err
	}
	// Git writes the files byte by byte, as they were read. The result goes to another index, so that the clone's stays
	// that of the snapshot.
	if _, err := c.git.run(ctx, "read-tree", "--reset", "-u", "--index-output="+filepath.Join(c.git.dir, other),
		index, work); err != nil {
		return err
	}
	if err := errors.Join(root.Remove(attributes), root.Remove(other)); err != nil {
		return err
	}
	_, err = c.git.run(ctx, "update-index", "-q", "--refresh")
	return err
}
