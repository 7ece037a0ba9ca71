// Package workspace gives every thread its own clone of a repository: one full mirror per repository, fetched with a
// credential, and per thread a shared clone without remote, which belongs to the agent.
//
//	<root>/mirrors/<owner>/<name>.git               the mirror, with lfs for files in Git LFS; .lock, .lfs, .use,
//	                                                .fetched, .size, .tmp and .broken lie beside it
//	<root>/threads/<thread>/repos/<owner>/<name>    the clone; beside it are .<name>~index, ~snap, ~tmp, ~old,
//	                                                ~broken, ~strange, ~submodules and ~with
//	<root>/threads/<thread>/files, scratch          see Files and Scratch
//	<root>/threads/<thread>/files-<name>            see FilesApart
//	<root>/threads/<thread>/.left, .thread, .size   see Leave; the thread's name; see Threads
//	<root>/threads/<thread>.lock
//	<root>/trash, janitor.lock                      see Discard and Alone
//
// It promises:
//   - No credential reaches a file, a URL, a clone or another process. A git that uses one talks to the remote through
//     a proxy in this process (see gate), which forwards only what that git needs.
//   - Nothing that an agent writes into its clone makes git on the host execute anything, or write elsewhere: before
//     git reads a clone, its configuration is replaced (see secure), and hooks, fsmonitor and filters are off in every
//     call, but for errand's own that fills a new clone from Git LFS (see fetchLFS). While the agent is running, git
//     reads a copy (see shadow).
//   - Several processes may share a root. A mirror or clone at its path is complete; the next process removes what a
//     killed one left.
//   - Publish pushes from the mirror, after checking everything there, never to a branch without a slash in its name,
//     and replaces only errand's own commits. With a Signer, each commit that it adds to the remote is signed.
//   - No object of a mirror is dropped while a clone borrows from it. Damaged directories are set aside as broken,
//     once.
//   - A cancelled call returns soon and leaves no git process.
//
// It does not protect against a process of the same user outside a sandbox, which can write to mirrors. It does not
// decide what is no longer needed: its callers do, with Threads, Save and Discard, Mirrors, DiscardMirror and Tend.
//
// All methods may be called from any goroutine. While Checkout, Restore, Publish, Save or Changes works on a clone, no
// agent may run in it. Snapshot works while one does.
package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config sets where a Workspace keeps its directories and how it reaches repositories.
type Config struct {
	// Dir is the root, made with mode 0700. Clones remember its path, so it must not move.
	Dir string
	// URL returns the clone URL of "owner/name": http, https or a path. A URL with a credential is refused.
	URL func(repo string) string
	// Credential is called before each fetch, so it may return short-lived tokens. Its error is returned wrapped. Nil
	// means anonymous access.
	Credential func(ctx context.Context, repo string) (username, password string, err error)
	// Env is added to git's environment, for proxies and certificates (HTTPS_PROXY=…, GIT_SSL_CAINFO=…). Git inherits
	// only PATH from this process.
	Env []string
	// Signer signs the commits that Publish pushes; nil: they are not signed.
	Signer *Signer
	// Log receives reports of damaged and replaced directories, and of lost work. Nil discards them.
	Log *slog.Logger
}

// Workspace makes clones. Its fields never change after New.
type Workspace struct {
	cfg Config
	log *slog.Logger
	git git // outside any repository

	transport http.RoundTripper // to remotes that accept a credential

	slow sync.Map // repositories that were too slow as submodules: until when they are tried
}

// New creates the root directory and checks that git is installed and new enough.
func New(cfg Config) (*Workspace, error) {
	if cfg.Dir == "" || cfg.URL == nil {
		return nil, errors.New("workspace: Dir and URL are required")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make workspace in ERRAND_STATE_DIR: %w", err)
	}
	// Resolve links, because git compares the path with its own idea of where it is (GIT_CEILING_DIRECTORIES).
	dir, err := filepath.EvalSymlinks(cfg.Dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		err = os.Chmod(dir, 0o700) //nolint:gosec // a directory needs the x bit
	}
	if err != nil {
		return nil, fmt.Errorf("make workspace in ERRAND_STATE_DIR: %w", err)
	}
	cfg.Dir = dir
	g, err := findGit(dir, cfg.Env)
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(cfg.Env)
	if err != nil {
		return nil, err
	}
	return &Workspace{cfg: cfg, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), git: g, transport: transport}, nil
}

// Want describes the clone that a run needs.
type Want struct {
	Thread string // names the clone, any non-empty text
	Repo   string // "owner/name"
	// Ref is a branch, a tag, a full SHA or "refs/…/…" below heads, tags or pull; empty is the default branch.
	// On a branch the clone has a local branch of that name, otherwise a detached HEAD. Clone.From says which it was.
	Ref string
	// Base is the branch that the work is compared with, such as the base of a pull request; empty is Protected.
	Base string
	// Protected is the branch whose state counts as trusted, for Instructions, TrustedConfig, BaseFile and set-ups;
	// empty is the default branch. Anyone who can push chooses Base, so Base is not trusted.
	Protected string
	// Own is a branch that earlier runs of the thread have published. A new clone starts there instead of at Ref if
	// the remote has it, or one with the same last part, which is then unique to the thread.
	Own string
	// Keep leaves an existing clone as the last run left it (commits, dirty files, ignored files) and only updates its
	// origin/* refs. Ref is then not checked out and need not exist. Configuration that the agent wrote with git
	// config is lost in any case. False recreates the clone: a reset and clean that trusts nothing and reuses
	// unchanged files. If that fails or is cancelled, the clone may be gone.
	Keep bool
	// Strange means that strangers wrote what is at Ref, and the clone is only read. A later Want without Strange
	// keeps nothing of such a clone.
	Strange bool
	// Runs means that what is at Ref may be executed. A full SHA is then refused with ErrRef if no branch and no tag
	// has that commit: anyone can put one there, with a fork.
	Runs bool
	// With are other repositories whose code may be written into the clone. See Clone.With.
	With []string
	// Submodule says why the clone may not have the files of another repository as a submodule, as a clause for people;
	// "": it may. Nil: there are no submodules.
	Submodule func(ctx context.Context, repo string) (why string, err error)
	// TrustedConfig replaces what the CLI would execute (.claude and .mcp.json in every directory) by what Protected
	// has, removes files that Protected does not have, and hides the difference from git status and commit -a.
	TrustedConfig bool
}

// Clone describes a clone as Checkout left it. It is plain data and may be stored.
type Clone struct {
	Repo   string
	Dir    string // the agent's; the same for every run of the thread in this repository
	Mirror string // Dir borrows objects from it: a sandbox must let the agent read it, but never write it
	Head   string // SHA checked out
	// From is what Ref or Own named. With Keep, Head may be another commit, and From is zero if there was no such ref.
	From    Ref
	Base    string // branch
	BaseSHA string
	// Protected is the branch that Want.Protected named, or the one of the remote's HEAD at the last fetch.
	Protected    string
	ProtectedSHA string
	// Published is the remote's branch for Want.Own; empty: none.
	Published string
	// With are the other repositories whose code may be in the clone: those of each Want since it was created.
	With []string
	// Submodules are the directories that have the files of submodules. Git looks at nothing below them.
	Submodules []string
	// LFS says that files are in Git LFS. Publish refuses new contents of them.
	LFS bool
	// Lacks is what the index has and the files lack.
	Lacks []Lack
	// Fresh means that this call created the clone, without anything of an earlier run. With Keep that is the first
	// clone, or one whose predecessor git could no longer read; the predecessor is set aside with all its files.
	Fresh bool
}

// Checkout updates the mirror and prepares the thread's clone. A full SHA and a base that the mirror has need no fetch
// and wait for none; everything else fetches.
//
// An error is one sentence for people, without secrets. After ErrNotFound, ErrAuth, ErrRef and ErrUnsafe retrying does
// not help.
// If ctx ended, the error wraps its cause. All other errors are infrastructure errors.
func (w *Workspace) Checkout(ctx context.Context, want Want) (_ Clone, err error) {
	defer wrap(&err, "clone %s", want.Repo)
	c, release, err := w.hold(ctx, want)
	if err != nil {
		return Clone{}, err
	}
	defer release()

	tip, err := c.mirror.sync(ctx, want)
	want.Strange = want.Strange || tip.stray && !want.Runs
	if want.Keep && exists(c.dir) && tip.baseSHA != "" && (want.Strange || !exists(c.strange())) {
		if err := c.mark(&want); err != nil {
			return Clone{}, err
		}
		kept, keepErr := c.keep(ctx, want, tip)
		if keepErr == nil || ctx.Err() != nil || errors.Is(keepErr, errRights) {
			return kept, keepErr
		}
		w.log.WarnContext(ctx, "clone cannot be kept, setting it aside", "thread", want.Thread, "dir", c.dir,
			"err", keepErr)
	}
	if err != nil {
		return Clone{}, err
	}
	fill := func(made clone) error { return made.checkOut(ctx, tip.at.Commit, tip.at.branch()) }
	if !want.Keep && exists(c.dir) && exists(c.index) {
		renewed, err := c.renew(ctx, want, tip, fill)
		if err == nil || ctx.Err() != nil {
			return renewed, err
		}
		w.log.WarnContext(ctx, "files of the clone cannot be taken over, writing all of them", "thread", want.Thread,
			"dir", c.dir, "err", err)
	}
	return w.make(ctx, c, want, tip, fill)
}

// wrap says what was being done when a function failed. It is deferred.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// hold checks want, locks the thread and keeps the mirror from being removed, until release is called.
func (w *Workspace) hold(ctx context.Context, want Want) (_ clone, release func(), _ error) {
	if err := want.check(); err != nil {
		return clone{}, nil, err
	}
	dir := w.cloneDir(want.Thread, want.Repo)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return clone{}, nil, err
	}
	held, err := lock(ctx, w.threadDir(want.Thread)+".lock")
	if err != nil {
		return clone{}, nil, err
	}
	m, unused, err := w.use(ctx, want.Repo, []*os.File{held})
	if err != nil {
		unlock(held)
		return clone{}, nil, err
	}
	return m.clone(dir), func() { unused(); unlock(held) }, nil
}

// use returns the mirror of a repository, and keeps it from being removed until release is called. Its git inherits
// the locks that the caller holds.
func (w *Workspace) use(ctx context.Context, repo string, held []*os.File) (m mirror, release func(), _ error) {
	m = w.mirror(repo)
	m.asked = time.Now()
	used, err := share(ctx, m.beside("use"))
	if err != nil {
		return m, nil, err
	}
	m.git.held = append(slices.Clip(held), used)
	return m, func() { unlock(used) }, nil
}

// make recreates the clone, and the mirror as well if it turns out to be damaged.
func (w *Workspace) make(ctx context.Context, c clone, want Want, t tip, fill func(clone) error) (Clone, error) {
	made, err := c.make(ctx, want, t, fill)
	if err == nil || ctx.Err() != nil || c.mirror.healthy(ctx) {
		return made, err
	}
	w.log.WarnContext(ctx, "mirror is damaged, fetching it again", "thread", want.Thread,
		"dir", c.mirror.dir, "err", err)
	if err := c.mirror.repair(ctx); err != nil {
		return Clone{}, err
	}
	return c.make(ctx, want, t, fill)
}

// Errors of Checkout that callers can distinguish. Retrying does not help.
var (
	// ErrNotFound means that the repository does not exist or the credential cannot see it; hosts do not say which.
	ErrNotFound = errors.New("repository not found or no access")
	// ErrAuth means that the host refused the credential. The operator has to fix it, not the user.
	ErrAuth = errors.New("credential refused")
	// ErrRef means that the repository has no such branch, tag or commit.
	ErrRef = errors.New("reference not found")
)

// gitError is a failed git command. stderr is bounded and contains no secret.
type gitError struct {
	command string // fetch
	stderr  string
	err     error
}

func (e *gitError) Error() string {
	if line := e.line(); line != "" {
		return fmt.Sprintf("git %s: %s", e.command, line)
	}
	return fmt.Sprintf("git %s: %v", e.command, e.err)
}

func (e *gitError) Unwrap() error { return e.err }

// gitFailed reports whether git itself failed, and not what it needs or its caller.
func gitFailed(err error) bool {
	_, failed := errors.AsType[*gitError](err)
	return failed
}

// line returns the most useful line of stderr: git's first own error, because advice and consequences follow it, or
// else the last line.
func (e *gitError) line() string {
	last := ""
	for line := range strings.Lines(e.stderr) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// printable drops control characters: a remote chooses what comes after "remote:".
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

// remoteError classifies an error of a git that talked to the remote. Git has no exit codes for these errors, so it
// matches the phrases of git 2.31 to 2.50 in the C locale (http.c, remote-curl.c, setup.c, upload-pack.c).
func remoteError(err error) error {
	var ge *gitError
	if !errors.As(err, &ge) {
		return err
	}
	has := func(phrases ...string) bool {
		for _, p := range phrases {
			if strings.Contains(ge.stderr, p) {
				return true
			}
		}
		return false
	}
	if malformed(err) {
		return unsafeError(ge)
	}
	meaning := error(nil)
	switch {
	case has("Authentication failed for", "returned error: 401", "returned error: 403"):
		meaning = ErrAuth
	// A host that prompts an anonymous reader for a name hides a private repository like a missing one.
	case has("' not found", "does not appear to be a git repository", "could not read Username", "returned error: 404"):
		meaning = ErrNotFound
	case has("not our ref", "unadvertised object", "couldn't find remote ref"):
		meaning = ErrRef
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", meaning, ge.line())
}

// Lasting reports whether neither a retry nor a new mirror can fix an error.
func Lasting(err error) bool {
	for _, last := range []error{ErrNotFound, ErrAuth, ErrRef, ErrUnsafe, errLong} {
		if errors.Is(err, last) {
			return true
		}
	}
	return false
}

// Explain returns what git said about an error that is its own, in one line, or "".
func Explain(err error) string {
	failed, ok := errors.AsType[*gitError](err)
	if !ok {
		return ""
	}
	return failed.Error()
}
