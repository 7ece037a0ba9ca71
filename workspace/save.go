package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// ErrUnsaved means that a clone holds something that Save cannot store: another repository, or an unreadable file.
var ErrUnsaved = errors.New("the work cannot be saved")

// SavedExts returns the extensions of the files that Save creates.
func SavedExts() []string { return []string{bundleExt, patchExt} }

const (
	bundleExt = ".bundle"
	patchExt  = ".patch"
)

// Save writes the work in a thread's clones that the mirror lacks to files in dir, including clones that were set
// aside. The files are a git bundle of all refs, stash entries and reflogs, with uncommitted work as refs/errand/work,
// and a patch from the newest commit that the repository has to the current files. A clone without work gets no files.
// Ignored files are not work.
//
// Save is all or nothing, regardless of size, and flushes the files to disk. No agent may run in the clones, and only
// one process at a time may save to dir.
func (w *Workspace) Save(ctx context.Context, thread, dir string) (names []string, err error) {
	defer wrap(&err, "save %s", thread)
	staging := filepath.Join(dir, ".saving")
	if err := dirtree.Remove(staging); err != nil { // left by a killed process
		return nil, err
	}
	if err := os.MkdirAll(staging, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dirtree.Remove(staging)) }()
	clones, err := w.clones(thread)
	if err != nil {
		return nil, err
	}
	for _, c := range clones {
		if err := w.save(ctx, c, staging); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(c.Dir), err)
		}
	}
	if names, err = list(staging); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(staging, name), filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return names, flush(dir)
}

// clones returns the clones of a thread, including those set aside.
func (w *Workspace) clones(thread string) (all []Clone, err error) {
	root := filepath.Join(w.threadDir(thread), "repos")
	owners, err := list(root)
	if err != nil {
		return nil, err
	}
	for _, owner := range owners {
		names, err := list(filepath.Join(root, owner))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			repo := name
			if beside := besideClone.FindStringSubmatch(name); beside != nil {
				if beside[2] != "broken" {
					continue // not the agent's, or already discarded
				}
				repo = beside[1]
			}
			all = append(all, Clone{Repo: repoAt(owner, repo), Dir: filepath.Join(root, owner, name)})
		}
	}
	return all, nil
}

// besideClone matches what beside names, also that of other versions of errand.
var besideClone = regexp.MustCompile(`^\.(.+)~(.+)$`)

// list returns the names in a directory, or nothing if it does not exist.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", filepath.Base(dir), err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// save writes the files of one clone.
func (w *Workspace) save(ctx context.Context, c Clone, dir string) error {
	s, err := w.shadow(ctx, c, entirely)
	if err != nil {
		return err
	}
	defer s.remove()
	work, err := s.preserve(ctx)
	if err != nil {
		return err
	}
	all := []string{"HEAD", "--all", "--not", "--alternate-refs"}
	out, err := s.git.run(ctx, append([]string{"rev-list"}, all...)...)
	if err != nil || out == "" {
		return err
	}
	// Name the files by all commits: other work of the thread may be at the same commit and must not be overwritten.
	commits := strings.Fields(out)
	slices.Sort(commits)
	id := sum([]byte(strings.Join(commits, "\n")))[:12]
	name := filepath.Join(dir, "work-"+filepath.Base(c.thread())+"-"+strings.ReplaceAll(c.Repo, "/", "-")+"-"+id)
	bundle := append([]string{"bundle", "create", "--quiet", name + bundleExt}, all...)
	if _, err := s.git.run(ctx, bundle...); err != nil {
		return err
	}
	base, err := s.known(ctx)
	if err != nil {
		return err
	}
	patch := diff("--binary", "--full-index", "--output="+name+patchExt, base, work, "--")
	if _, err := s.git.run(ctx, patch...); err != nil {
		return err
	}
	for _, ext := range SavedExts() {
		if err := errors.Join(os.Chmod(name+ext, 0o600), flush(name+ext)); err != nil {
			return err
		}
	}
	return nil
}

// preserve commits everything uncommitted. It returns the commit of the files, or HEAD if they are unchanged.
func (s *shadow) preserve(ctx context.Context) (work string, err error) {
	if err := s.nameLost(ctx); err != nil {
		return "", err
	}
	c, err := s.changes(ctx)
	if err != nil {
		return "", err
	}
	c.files = slices.DeleteFunc(c.files, func(f change) bool { return f.odd && s.hollow(f.name) })
	work, missing, err := s.commit(ctx, c, math.MaxInt64, math.MaxInt64)
	if err != nil {
		return "", err
	}
	others, err := s.nested(ctx)
	if err != nil {
		return "", err
	}
	if missing = append(missing, others...); len(missing) > 0 {
		return "", fmt.Errorf("%w: %s", ErrUnsaved, strings.Join(short(missing), ", "))
	}
	if work == "" {
		work = s.head
	}
	return work, nil
}

// hollow reports whether a name is that of a pipe, a socket or a device, which have no content to save.
func (s *shadow) hollow(name string) bool {
	info, err := s.files.Lstat(name)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// nested lists the other repositories and work trees inside the clone: submodules, and repositories that an agent has
// cloned into it and added. Git records only their commits.
func (s *shadow) nested(ctx context.Context) (found []string, err error) {
	// Git's own directories for submodules and work trees; it removes the latter with the last work tree.
	places := []string{".git/modules", ".git/worktrees"}
	_, links, err := tracked(ctx, s.git)
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		places = append(places, link.name)
	}
	for _, dir := range places {
		if info, err := s.files.Lstat(dir); err != nil || !info.IsDir() || s.throughLink(dir) {
			continue // missing; what is in its place is an ordinary change
		}
		other, err := s.holds(dir)
		if err != nil || other {
			found = append(found, dir)
		}
	}
	return found, nil
}

// holds reports whether a directory has anything of a repository. The files of submodules that errand has put there,
// without one, are no work.
func (s *shadow) holds(dir string) (found bool, err error) {
	err = fs.WalkDir(s.files.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && name != dir && (d.Name() == ".git" || strings.HasPrefix(dir, ".git/")) {
			found, err = true, fs.SkipAll
		}
		return err
	})
	return found, err
}

// emptyTree is git's empty tree, which every repository has.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// known returns the newest ancestor of what is checked out that the mirror has, or the empty tree.
func (s *shadow) known(ctx context.Context) (string, error) {
	out, err := s.git.run(ctx, "rev-list", "--boundary", s.head, "--not", "--alternate-refs")
	if err != nil {
		return "", err
	}
	if out == "" {
		return s.head, nil
	}
	for line := range strings.Lines(out) {
		if sha, found := strings.CutPrefix(strings.TrimSpace(line), "-"); found {
			return sha, nil
		}
	}
	return emptyTree, nil
}

// flush flushes a file or a directory to disk.
func flush(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// nameLost creates refs/errand/lost/0, 1, … for commits that only reflogs have, such as one before it was amended, or
// an earlier stash entry: a bundle contains refs only, and readers look for refs.
func (s *shadow) nameLost(ctx context.Context) error {
	out, err := s.git.run(ctx, "rev-list", "--parents", "--reflog", "--not", "HEAD", "--all", "--alternate-refs")
	if err != nil {
		return err
	}
	var lost []string
	var refs strings.Builder
	parents := map[string]bool{}
	for line := range strings.Lines(out) { // "<commit> <parent>…"
		commits := strings.Fields(line)
		lost = append(lost, commits[0])
		for _, sha := range commits[1:] {
			parents[sha] = true
		}
	}
	lost = slices.DeleteFunc(lost, func(sha string) bool { return parents[sha] })
	for n, sha := range lost {
		fmt.Fprintf(&refs, "create refs/errand/lost/%d %s\n", n, sha)
	}
	_, err = s.git.reading(refs.String()).run(ctx, "update-ref", "--stdin")
	return err
}
