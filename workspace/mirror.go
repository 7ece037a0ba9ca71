package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// mirror is the only full copy of a repository; all workers on this root share it. Writing requires its lock. Reading
// does not, because git's refs are atomic and objects are never dropped.
type mirror struct {
	w    *Workspace
	repo string
	dir  string
	git  git // in dir
	// asked is when the caller began to wait for the mirror: it needs the remote's state as of then, or later.
	asked time.Time
}

func (w *Workspace) mirror(repo string) mirror {
	group, name := repoPath(repo)
	dir := filepath.Join(w.cfg.Dir, "mirrors", group, name+".git")
	return mirror{w: w, repo: repo, dir: dir, git: w.git.in(dir)}
}

// beside returns a path next to the mirror: "lock", "tmp", "broken". It differs from every mirror's path, because
// those end in ".git".
func (m mirror) beside(suffix string) string { return strings.TrimSuffix(m.dir, "git") + suffix }

// tip is the result of resolving a Want at one moment.
type tip struct {
	at            Ref    // zero: not found
	stray         bool   // at is a commit that no branch and no tag has
	base, baseSHA string // branch

	protected, protectedSHA string // branch
}

// published returns the branch that earlier runs have published, or "".
func (t tip) published(want Want) string {
	if want.Own != "" && path.Base(t.at.branch()) == path.Base(want.Own) {
		return t.at.branch()
	}
	return ""
}

// sync updates the mirror if necessary and resolves want in it. With ErrRef the tip holds what was found.
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
	if t.at.Commit == "" && t.baseSHA != "" && fullSHA.MatchString(want.Ref) {
		// A commit without a ref, for example after a force push. Hosts serve it by its SHA.
		if err := m.fetchRefs(ctx, r, want.Ref); err != nil {
			return t, remoteError(err)
		}
		return m.resolve(ctx, want)
	}
	return t, err
}

// fetchedSinceAsked reports whether another worker has updated the mirror while we waited for its lock. Many tasks of
// one repository that start together need one fetch. A time in the future is ignored: the clock may have been set
// back.
func (m mirror) fetchedSinceAsked() bool {
	at := m.fetched()
	return exists(m.dir) && at.After(m.asked) && !at.After(time.Now())
}

// update fetches everything, into a new mirror if none exists or the existing one is damaged.
func (m mirror) update(ctx context.Context) (remote, error) {
	began := time.Now()
	r, head, err := m.ask(ctx)
	if err != nil {
		return r, err
	}
	if exists(m.dir) {
		err = m.fetch(ctx, r, head)
		if err != nil && !Lasting(err) && !m.healthy(ctx) && ctx.Err() == nil {
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

// ask finds the branch of the remote's HEAD, which fetch does not report. It needs no repository, so its failures
// (credential, network) say nothing about the mirror. head is empty if the remote's HEAD is on no branch.
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

// create clones into a temporary directory and renames it, so that a mirror is never incomplete. An existing mirror is
// set aside, not removed: clones may borrow objects from it that the remote no longer has. It uses git clone instead
// of a first fetch, because clone writes all refs to one file, which matters with thousands of pull requests.
func (m mirror) create(ctx context.Context, r remote, head string) error {
	tmp := m.beside("tmp") // the lock makes one name enough, and the next call finds a leftover
	err := m.withPulls(ctx, func(refspecs ...string) error {
		if err := dirtree.Remove(tmp); err != nil {
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
		return errors.Join(remoteError(err), dirtree.Remove(tmp))
	}
	if err := secure(tmp, mirrorConfig, ""); err != nil {
		return err
	}
	if _, err := m.git.in(tmp).run(ctx, "symbolic-ref", "HEAD", cmp.Or(head, "refs/heads/main")); err != nil {
		return err
	}
	return replace(tmp, m.dir, m.beside("broken"))
}

const pullRefs = "+refs/pull/*/head:refs/pull/*/head"

// fetch updates the mirror's refs to those of the remote.
func (m mirror) fetch(ctx context.Context, r remote, head string) error {
	if err := secure(m.dir, mirrorConfig, ""); err != nil {
		return err
	}
	err := m.withPulls(ctx, func(refspecs ...string) error {
		all := append([]string{"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}, refspecs...)
		return m.fetchRefs(ctx, r, all...)
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

// withPulls fetches with the heads of pull requests, which anyone can create, and again without them if git finds
// something that it refuses: a stranger's commit must not block the repository's own commits.
func (m mirror) withPulls(ctx context.Context, fetch func(refspecs ...string) error) error {
	err := fetch(pullRefs)
	if !malformed(err) {
		return err
	}
	m.w.log.WarnContext(ctx, "pull requests are left out of the mirror: git refuses something in them",
		"dir", m.dir, "err", err)
	return fetch()
}

// fetchRefs fetches what the refspecs name. It prunes, because otherwise a new branch a/b could not be created after
// branch a was deleted. It does not affect our own refs outside these refspecs.
func (m mirror) fetchRefs(ctx context.Context, r remote, refspecs ...string) error {
	args := []string{
		"fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--", r.url,
	}
	return m.receive(func() error {
		_, err := m.git.remotely(ctx, r, append(args, refspecs...)...)
		return err
	})
}

// healthy reports whether every object that a ref needs exists. It reads all of history, so call it only after an
// unexpected failure.
func (m mirror) healthy(ctx context.Context) bool {
	_, err := m.git.accepting().run(ctx, "fsck", "--connectivity-only", "--no-dangling", "--no-progress")
	return err == nil
}

// repair recreates the mirror, unless another worker has just done so.
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

// lockPoll is the interval between attempts. flock(2) can wait, but not until a context ends.
const lockPoll = 50 * time.Millisecond

// lock takes the lock at path, waiting until ctx ends. Lock threads before mirrors.
//
// The git processes under a lock inherit it (git.holding). If this process is killed, the lock lasts until its orphans
// are gone too. So the holder of a lock knows that nothing else writes there, and that git's lock and temporary files
// found there are leftovers. The lock file is never removed: otherwise two holders could lock two files of one name.
func lock(ctx context.Context, path string) (*os.File, error) { return wait(ctx, path, unix.LOCK_EX) }

// share takes a shared lock at path.
func share(ctx context.Context, path string) (*os.File, error) { return wait(ctx, path, unix.LOCK_SH) }

// tryLock takes the lock at path if it is free, and returns nil otherwise.
func tryLock(path string) (*os.File, error) { return try(path, unix.LOCK_EX) }

func wait(ctx context.Context, path string, how int) (*os.File, error) {
	for {
		if f, err := try(path, how); f != nil || err != nil {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", filepath.Base(path), context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

func try(path string, how int) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", filepath.Base(path), err)
}

// unlock unlocks explicitly: closing has no effect while another process has the file open.
func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // cannot fail on a locked file
	f.Close()
}

// An untouched directory of a thread is better than any bundle of it, because it also has the ignored files. A token
// in a file beside the directories shows that they are untouched.

// Leave records that nothing runs in the thread's directories any more. A later Enter that returns the same token
// finds them unchanged.
func (w *Workspace) Leave(thread string) (token string, err error) {
	defer wrap(&err, "leave thread")
	if err := os.MkdirAll(w.threadDir(thread), 0o700); err != nil {
		return "", err
	}
	token = rand.Text()
	return token, os.WriteFile(w.leftFile(thread), []byte(token), 0o600)
}

// Enter must be called before a run begins in the thread's directories. It returns the token of the last Leave once.
// The token is empty if there was another Enter since, or on another machine.
func (w *Workspace) Enter(thread string) (token string, err error) {
	defer wrap(&err, "enter thread")
	if err := w.name(thread, true); err != nil {
		return "", err
	}
	name := w.leftFile(thread)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(data), os.Remove(name)
}

const leftName = ".left"

func (w *Workspace) leftFile(thread string) string {
	return filepath.Join(w.threadDir(thread), leftName)
}
