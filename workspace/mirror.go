package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// mirror is the one full copy of a repository, shared by all workers on this root. It is written under its lock only;
// reading needs no lock, as git's refs are atomic and objects are never dropped.
type mirror struct {
	w    *Workspace
	repo string
	dir  string
	git  git // in dir
	// asked is when whoever has it began to wait for it: the remote's state is wanted as of then, or later.
	asked time.Time
}

func (w *Workspace) mirror(repo string) mirror {
	group, name := repoPath(repo)
	dir := filepath.Join(w.cfg.Dir, "mirrors", group, name+".git")
	return mirror{w: w, repo: repo, dir: dir, git: w.git.in(dir)}
}

// beside is a path next to the mirror: "lock", "tmp", "broken". No repository can have it, each ends in ".git".
func (m mirror) beside(suffix string) string { return strings.TrimSuffix(m.dir, "git") + suffix }

// tip is what a Want means at one moment.
type tip struct {
	head, branch  string // branch: only if Ref is one
	base, baseSHA string
	fallback      string // the default branch
}

// sync brings the mirror up to date, if need be, and resolves want in it. With ErrRef the tip holds what was found.
func (m mirror) sync(ctx context.Context, want Want) (tip, error) {
	if fullSHA.MatchString(want.Ref) && want.Own == "" {
		if t, err := m.resolve(ctx, want); err == nil {
			return t, nil
		}
	}
	held, err := lock(ctx, m.beside("lock"))
	if err != nil {
		return tip{}, err
	}
	defer unlock(held)
	m.git = m.git.holding(held)

	var r remote
	if m.fetchedSinceAsked() {
		r, err = m.w.remote(ctx, m.repo)
	} else {
		r, err = m.update(ctx)
	}
	if err != nil {
		return tip{}, err
	}
	t, err := m.resolve(ctx, want)
	if t.head == "" && t.baseSHA != "" && fullSHA.MatchString(want.Ref) {
		// A commit that no ref has any more, after a force push for one; hosts give it to who knows its name.
		if _, err := m.git.remotely(ctx, r, fetchArgs(r, want.Ref)...); err != nil {
			return t, remoteError(err)
		}
		return m.resolve(ctx, want)
	}
	return t, err
}

// fetchedSinceAsked reports whether somebody else brought the mirror up to date while we waited for its lock. Many tasks of one repository
// that start at once need one fetch. A time that is still to come is not believed: a clock may be set back.
func (m mirror) fetchedSinceAsked() bool {
	at := m.fetched()
	return exists(m.dir) && at.After(m.asked) && !at.After(time.Now())
}

// update fetches everything, into a new mirror if there is none or if the one there is damaged.
func (m mirror) update(ctx context.Context) (remote, error) {
	began := time.Now()
	r, head, err := m.ask(ctx)
	if err != nil {
		return r, err
	}
	if exists(m.dir) {
		err = m.fetch(ctx, r, head)
		if err != nil && !lasting(err) && !m.healthy(ctx) && ctx.Err() == nil {
			m.w.log.WarnContext(ctx, "mirror is damaged, fetching it again", "dir", m.dir, "err", err)
			err = m.create(ctx, r, head)
		}
	} else {
		err = m.create(ctx, r, head)
	}
	if err != nil {
		return r, err
	}
	return r, m.noteFetch(began)
}

// ask finds out which branch the remote's HEAD is on, which fetch does not tell. It needs no repository, so what fails here (the
// credential, the network) says nothing about the state of the mirror. head is empty if the remote's HEAD is on no branch.
func (m mirror) ask(ctx context.Context) (r remote, head string, err error) {
	if r, err = m.w.remote(ctx, m.repo); err != nil {
		return r, "", err
	}
	out, err := m.git.in("").remotely(ctx, r, "ls-remote", "--symref", "--", r.url, "HEAD")
	if err != nil {
		return r, "", remoteError(err)
	}
	if line, found := strings.CutPrefix(out, "ref: "); found { // "ref: refs/heads/main\tHEAD"
		head, _, _ = strings.Cut(line, "\t")
	}
	return r, head, nil
}

// create clones into a temporary directory and renames it, so that a mirror is never half there. What was in its
// place is set aside, not removed: clones may borrow objects from it that the remote no longer has.
// It is git clone and not a first fetch, because that writes all refs as one file; thousands of pull requests matter.
func (m mirror) create(ctx context.Context, r remote, head string) error {
	tmp := m.beside("tmp") // one name suffices under the lock, and a leftover is found again
	err := m.withPulls(ctx, func(refspecs ...string) error {
		if err := removeAll(tmp); err != nil {
			return err
		}
		args := []string{"clone", "--quiet", "--bare", "--no-local", "--template="}
		for _, refspec := range refspecs {
			args = append(args, "--config", "remote.origin.fetch="+refspec)
		}
		_, err := m.git.in("").remotely(ctx, r, append(args, "--", r.url, tmp)...)
		return err
	})
	if err != nil {
		return errors.Join(remoteError(err), removeAll(tmp))
	}
	err = secure(tmp, mirrorConfig, "")
	if err == nil {
		_, err = m.git.in(tmp).run(ctx, "symbolic-ref", "HEAD", cmp.Or(head, "refs/heads/main"))
	}
	if err == nil {
		err = replace(tmp, m.dir, m.beside("broken"))
	}
	return err
}

const pullRefs = "+refs/pull/*/head:refs/pull/*/head"

// fetch makes the refs of the mirror those of the remote.
func (m mirror) fetch(ctx context.Context, r remote, head string) error {
	if err := secure(m.dir, mirrorConfig, ""); err != nil {
		return err
	}
	err := m.withPulls(ctx, func(refspecs ...string) error {
		args := fetchArgs(r, append([]string{"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}, refspecs...)...)
		_, err := m.git.remotely(ctx, r, args...)
		return err
	})
	if err != nil {
		return remoteError(err)
	}
	if head == "" {
		return nil
	}
	_, err = m.git.run(ctx, "symbolic-ref", "HEAD", head)
	return err
}

// withPulls fetches with the heads of pull requests, which anybody can make, and without them if git finds something malformed: a stranger's
// commit must not keep the repository's own from us.
func (m mirror) withPulls(ctx context.Context, fetch func(refspecs ...string) error) error {
	err := fetch(pullRefs)
	if !malformed(err) {
		return err
	}
	m.w.log.WarnContext(ctx, "pull requests are left out of the mirror: git finds something malformed", "dir", m.dir, "err", err)
	return fetch()
}

// fetchArgs: pruned, or a new branch a/b could not come where a deleted branch a was. Refs we keep ourselves, outside of
// these refspecs, are not touched by it.
func fetchArgs(r remote, refspecs ...string) []string {
	return append([]string{
		"fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--", r.url,
	}, refspecs...)
}

// healthy reports whether every object that a ref needs is there. It reads all of history, so it is asked only after
// something failed that should not.
func (m mirror) healthy(ctx context.Context) bool {
	_, err := m.git.run(ctx, "fsck", "--connectivity-only", "--no-dangling", "--no-progress")
	return err == nil
}

// repair makes the mirror anew, unless another worker just did.
func (m mirror) repair(ctx context.Context) error {
	held, err := lock(ctx, m.beside("lock"))
	if err != nil {
		return err
	}
	defer unlock(held)
	m.git = m.git.holding(held)
	if m.healthy(ctx) {
		return nil
	}
	r, head, err := m.ask(ctx)
	if err != nil {
		return err
	}
	return m.create(ctx, r, head)
}

// resolve finds the commits that want names in the mirror as it is.
func (m mirror) resolve(ctx context.Context, want Want) (tip, error) {
	name, err := m.git.run(ctx, "symbolic-ref", "HEAD")
	if err != nil {
		return tip{}, err
	}
	t := tip{fallback: strings.TrimPrefix(strings.TrimSpace(name), "refs/heads/")}
	t.base = strings.TrimPrefix(want.Base, "refs/heads/")
	if t.base == "" {
		t.base = t.fallback
	}
	if t.baseSHA, err = m.commit(ctx, "refs/heads/"+t.base); err != nil {
		return t, err
	}
	ref := want.Ref
	if want.Own != "" {
		if t.head, err = m.commit(ctx, "refs/heads/"+want.Own); err == nil {
			t.branch = want.Own
			return t, nil
		}
		if !errors.Is(err, ErrRef) {
			return t, err
		}
	}
	if ref == "" {
		ref = "refs/heads/" + t.fallback
	}
	names := []string{"refs/heads/" + ref, "refs/tags/" + ref}
	if fullSHA.MatchString(ref) || strings.HasPrefix(ref, "refs/") {
		names = []string{ref}
	}
	for _, name := range names {
		t.head, err = m.commit(ctx, name)
		if err == nil {
			if branch, found := strings.CutPrefix(name, "refs/heads/"); found {
				t.branch = branch
			}
			return t, nil
		}
		if !errors.Is(err, ErrRef) {
			return t, err
		}
	}
	return t, fmt.Errorf("%w: %q", ErrRef, ref)
}

// commit is the commit behind a full ref name or SHA.
func (m mirror) commit(ctx context.Context, name string) (string, error) {
	out, err := m.git.run(ctx, "rev-parse", "--quiet", "--verify", name+"^{commit}")
	var ge *gitError
	if errors.As(err, &ge) && ge.stderr == "" { // what --quiet does for a name that is not there
		return "", fmt.Errorf("%w: %q", ErrRef, strings.TrimPrefix(name, "refs/heads/"))
	}
	return strings.TrimSpace(out), err
}
