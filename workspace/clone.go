package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// clone is the directory of one thread and repository. The caller holds its lock, and no agent runs in it.
type clone struct {
	dir    string
	index  string // copy of the index as it was checked out; see inherit below
	mirror mirror
	git    git // in dir, never with a credential
	// why has the reasons for what a checkout leaves out, by name.
	why map[string]string
}

func (m mirror) clone(dir string) clone {
	c := clone{dir: dir, mirror: m, git: m.git.at(dir), why: map[string]string{}}
	c.index = c.beside("index")
	return c
}

// beside returns a path next to the clone. No repository name contains a tilde.
func (c clone) beside(suffix string) string {
	return filepath.Join(filepath.Dir(c.dir), "."+filepath.Base(c.dir)+"~"+suffix)
}

// secure must run before the first git command in a directory that an agent had.
func (c clone) secure() error {
	config := cloneConfig + c.mirror.lfsFilter()
	return secure(filepath.Join(c.dir, ".git"), config, filepath.Join(c.mirror.dir, "objects"))
}

// make builds the clone in a temporary directory, calls fill to check out its content, and moves it to its place. It
// reads nothing of the old clone. The old clone is removed only when the new one is complete, or set aside if keep
// failed on it.
func (c clone) make(ctx context.Context, want Want, t tip, fill func(clone) error) (Clone, error) {
	want.With = slices.Compact(slices.Sorted(slices.Values(want.With)))
	marked := want
	if err := c.mark(&marked); err != nil {
		return Clone{}, err
	}
	tmp := c
	tmp.dir = c.beside("tmp")
	tmp.git = c.git.at(tmp.dir)
	if err := dirtree.Remove(tmp.dir); err != nil {
		return Clone{}, err
	}
	defer func() { _ = dirtree.Remove(tmp.dir) }() // after an error; if that fails, the next make removes it
	_, err := c.mirror.git.in("").run(ctx, "clone", "--quiet", "--shared", "--no-checkout", "--template=", "--",
		c.mirror.dir, tmp.dir)
	if err != nil {
		return Clone{}, err
	}
	if err := tmp.secure(); err != nil { // also removes the remote from the configuration, but not its refs
		return Clone{}, err
	}
	if err := fill(tmp); err != nil {
		return Clone{}, err
	}
	made, there, err := tmp.complete(ctx, want, t)
	if err != nil {
		return Clone{}, err
	}
	// The old note is not about the new clone. Until the new one is written, none of them can be kept.
	if err := os.WriteFile(c.beside("submodules"), nil, 0o600); err != nil {
		return Clone{}, err
	}
	aside := c.beside("broken")
	if !want.Keep {
		aside = c.beside("old")
	}
	if err := replace(tmp.dir, c.dir, aside); err != nil {
		return Clone{}, err
	}
	made.Dir, made.Fresh = c.dir, true
	if !want.Strange {
		err = dirtree.Remove(c.strange())
	}
	return made, errors.Join(err, c.putWith(want.With), c.putInside(there), dirtree.Remove(c.beside("old")))
}

// checkOut checks a commit out in a new clone.
func (c clone) checkOut(ctx context.Context, commit, branch string) error {
	head := []string{"update-ref", "--no-deref", "HEAD", commit}
	if branch != "" {
		head = []string{"symbolic-ref", "HEAD", "refs/heads/" + branch}
	}
	if _, err := c.git.run(ctx, head...); err != nil {
		return err
	}
	// Not git checkout: if an object is missing, it leaves the file out and succeeds (git 2.39).
	_, err := c.git.run(ctx, "reset", "--quiet", "--hard", commit)
	return err
}

// strange returns the path of a marker that exists while the clone may contain files by strangers.
func (c clone) strange() string { return c.beside("strange") }

// with returns the other repositories whose code may be in the clone.
func (c clone) with() ([]string, error) {
	text, err := os.ReadFile(c.beside("with"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return strings.Fields(string(text)), err
}

// mark notes strangers and other repositories before any of their files are in the clone. It adds those known to want.
func (c clone) mark(want *Want) error {
	if want.Strange {
		if err := os.WriteFile(c.strange(), nil, 0o600); err != nil {
			return err
		}
	}
	before, err := c.with()
	if err != nil {
		return err
	}
	want.With = slices.Compact(slices.Sorted(slices.Values(append(before, want.With...))))
	return c.putWith(want.With)
}

func (c clone) putWith(repos []string) error {
	if len(repos) == 0 {
		return dirtree.Remove(c.beside("with"))
	}
	return os.WriteFile(c.beside("with"), []byte(strings.Join(repos, "\n")), 0o600)
}

// CodeIn returns the Clone.With of a thread's clone.
func CodeIn(w *Workspace, thread, repo string) ([]string, error) {
	return w.mirror(repo).clone(w.cloneDir(thread, repo)).with()
}

// keep leaves the commits, index and files of the last run as they are, but for submodules that this run may not have,
// and updates the remote's refs. An error other than errRights means that the clone can no longer be used.
func (c clone) keep(ctx context.Context, want Want, t tip) (Clone, error) {
	if err := c.secure(); err != nil {
		return Clone{}, err
	}
	_, err := c.git.run(ctx, "fetch", "--quiet", "--prune", "--no-write-fetch-head", "--no-recurse-submodules", "--",
		c.mirror.dir, "+refs/heads/*:refs/remotes/origin/*")
	if err != nil {
		return Clone{}, err
	}
	links, pointers, err := c.git.having(bounded).inventory(ctx)
	if gitFailed(err) { // an agent has damaged the index
		c.mirror.w.log.WarnContext(ctx, "what the clone lacks is not known", "dir", c.dir, "err", err)
		err = nil
	}
	if err != nil {
		return Clone{}, err
	}
	there, err := c.withdraw(ctx, want, t.protectedSHA, links)
	if err != nil {
		return Clone{}, err
	}
	kept, err := c.finish(ctx, want, t)
	if err != nil {
		return Clone{}, err
	}
	return kept, c.lacks(&kept, links, pointers, there)
}

// complete adds what git has not checked out to a new clone, and finishes it.
func (c clone) complete(ctx context.Context, want Want, t tip) (made Clone, there inside, _ error) {
	links, pointers, err := c.git.inventory(ctx)
	if err != nil {
		return made, there, err
	}
	if err := c.fetchLFS(ctx, pointers); err != nil {
		return made, there, err
	}
	if err := c.remember(); err != nil {
		return made, there, err
	}
	if there, err = c.submodules(ctx, want, t.protectedSHA, links); err != nil {
		return made, there, err
	}
	if made, err = c.finish(ctx, want, t); err != nil {
		return made, there, err
	}
	return made, there, c.lacks(&made, links, pointers, there)
}

// finish does the steps that new and kept clones share.
func (c clone) finish(ctx context.Context, want Want, t tip) (Clone, error) {
	// The head of a fork's pull request is on no branch. Without a remote, the agent sees it move only through this
	// ref.
	if pull, found := strings.CutPrefix(want.Ref, "refs/pull/"); found && t.at.Commit != "" {
		if _, err := c.git.run(ctx, "update-ref", "refs/remotes/pull/"+pull, t.at.Commit); err != nil {
			return Clone{}, err
		}
	}
	if want.TrustedConfig {
		if err := c.trust(ctx, t.protectedSHA); err != nil {
			return Clone{}, err
		}
	}
	head, err := c.git.run(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return Clone{}, err
	}
	return Clone{
		Repo: want.Repo, Dir: c.dir, Mirror: c.mirror.dir, Head: strings.TrimSpace(head), From: t.at,
		Base: t.base, BaseSHA: t.baseSHA, Protected: t.protected, ProtectedSHA: t.protectedSHA,
		Published: t.published(want), With: want.With,
	}, nil
}

// A new clone reuses the files of the previous clone, because writing them takes most of the time. It trusts nothing
// else of it: the old git directory is discarded, and every file that is not in errand's copy of the index is removed.
// With that copy git finds the files that were changed. An agent can restore a file's times and size, but not its
// ctime or inode.

// remember copies the index, before an agent can change it, to a place that none can write. The copy keeps its time,
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
	made := c.index + ".new"
	if err := os.WriteFile(made, data, 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(made, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return os.Rename(made, c.index)
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
	if err := dirtree.Remove(aside); err != nil {
		return err
	}
	if err := os.Rename(old.dir, aside); err != nil {
		return err
	}
	if err := dirtree.Remove(filepath.Join(aside, ".git")); err != nil {
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
	// Not root.FS(), which looks at each file: that takes long in a large repository.
	return fs.WalkDir(os.DirFS(c.dir), ".", func(name string, d fs.DirEntry, err error) error {
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
		return removeEntry(root, name, d)
	})
}
