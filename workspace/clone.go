package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// clone is the directory of one thread and repository. The caller holds its lock, and no agent runs in it.
type clone struct {
	dir    string
	index  string // copy of the index as it was checked out; see inherit.go
	mirror mirror
	git    git // in dir, never with a credential
}

func (m mirror) clone(dir string) clone {
	c := clone{dir: dir, mirror: m, git: m.git.at(dir)}
	c.index = c.beside("index")
	return c
}

// beside returns a path next to the clone. No repository name contains a tilde.
func (c clone) beside(suffix string) string {
	return filepath.Join(filepath.Dir(c.dir), "."+filepath.Base(c.dir)+"~"+suffix)
}

// secure must run before the first git command in a directory that an agent had.
func (c clone) secure() error {
	return secure(filepath.Join(c.dir, ".git"), cloneConfig, filepath.Join(c.mirror.dir, "objects"))
}

// make builds the clone in a temporary directory, calls fill to check out its content, and moves it to its place. It
// reads nothing of the old clone. The old clone is removed only when the new one is complete, or set aside if keep
// failed on it.
func (c clone) make(ctx context.Context, want Want, t tip, fill func(clone) error) (Clone, error) {
	tmp := c
	tmp.dir = c.beside("tmp")
	tmp.git = c.git.at(tmp.dir)
	if err := removeAll(tmp.dir); err != nil {
		return Clone{}, err
	}
	_, err := c.mirror.git.in("").run(ctx, "clone", "--quiet", "--shared", "--no-checkout", "--template=", "--",
		c.mirror.dir, tmp.dir)
	if err == nil {
		err = tmp.secure() // also removes the remote from the configuration, but not its refs
	}
	if err == nil {
		err = fill(tmp)
	}
	made := Clone{}
	if err == nil {
		made, err = tmp.finish(ctx, want, t)
	}
	if err != nil {
		_ = removeAll(tmp.dir) // otherwise the next make removes it
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
	return made, removeAll(c.beside("old"))
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
	if _, err := c.git.run(ctx, "reset", "--quiet", "--hard", commit); err != nil {
		return err
	}
	return c.remember()
}

// strange returns the path of a marker that exists while the clone may contain files by strangers.
func (c clone) strange() string { return c.beside("strange") }

// mark creates that marker before any such files are in the clone.
func (c clone) mark(want Want) error {
	if !want.Strange {
		return nil
	}
	return os.WriteFile(c.strange(), nil, 0o600)
}

// keep leaves the commits, index and files of the last run as they are and updates the remote's refs. An error means
// that git can no longer use the clone.
func (c clone) keep(ctx context.Context, want Want, t tip) (Clone, error) {
	if err := c.secure(); err != nil {
		return Clone{}, err
	}
	_, err := c.git.run(ctx, "fetch", "--quiet", "--prune", "--no-write-fetch-head", "--no-recurse-submodules", "--",
		c.mirror.dir, "+refs/heads/*:refs/remotes/origin/*")
	if err != nil {
		return Clone{}, err
	}
	return c.finish(ctx, want, t)
}

// finish does the steps that new and kept clones share.
func (c clone) finish(ctx context.Context, want Want, t tip) (Clone, error) {
	// The head of a fork's pull request is on no branch. Without a remote, the agent sees it move only through this
	// ref.
	if pull, found := strings.CutPrefix(want.Ref, "refs/pull/"); found && t.head != "" {
		if _, err := c.git.run(ctx, "update-ref", "refs/remotes/pull/"+pull, t.head); err != nil {
			return Clone{}, err
		}
	}
	if want.TrustedConfig {
		if err := c.trust(ctx, t.baseSHA); err != nil {
			return Clone{}, err
		}
	}
	head, err := c.git.run(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return Clone{}, err
	}
	return Clone{
		Repo: want.Repo, Dir: c.dir, Mirror: c.mirror.dir, Head: strings.TrimSpace(head),
		Base: t.base, BaseSHA: t.baseSHA, DefaultBranch: t.fallback,
		Published: want.Own != "" && t.branch == want.Own,
	}, nil
}
