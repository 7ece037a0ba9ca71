package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/internal/refname"
)

var (
	// A name has an owner, or a host and nested groups, before its last slash. No segment begins with a dash, and only
	// the last may begin with a dot: acme/.github exists.
	repoName = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/)+\.?[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	fullSHA  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	// mirrored matches the refs that a mirror copies; its other refs are errand's.
	mirrored = regexp.MustCompile(`^refs/(heads|tags|pull)/`)
	// ownRef matches the refs of a clone that belong to the agent.
	ownRef  = regexp.MustCompile(`^refs/(heads/.|stash$)`)
	notSlug = regexp.MustCompile(`[^a-z0-9]+`)
)

// check refuses what must not become a path or an argument. Its errors describe a mistake of the user.
func (w Want) check() error {
	if w.Thread == "" {
		return errors.New("the thread has no name")
	}
	if err := checkRepo(w.Repo); err != nil {
		return err
	}
	for _, ref := range []string{w.Ref, w.Base, w.Protected, w.Own} {
		foreign := strings.HasPrefix(ref, "refs/") && !mirrored.MatchString(ref)
		if len(ref) > 1024 || !refname.Valid(ref) || foreign {
			return fmt.Errorf("%w: %.100q is not a name for one", ErrRef, ref)
		}
	}
	return nil
}

// maxRepoName bounds a whole name, so that file systems accept the name of the groups' directory.
const maxRepoName = 200

func checkRepo(repo string) error {
	if len(repo) > maxRepoName || !repoName.MatchString(repo) || strings.Contains(repo, "..") ||
		strings.HasSuffix(repo, "/.git") {
		return fmt.Errorf("%w: %.100q is not the name of a repository", ErrNotFound, repo)
	}
	return nil
}

// groupSeparator replaces all slashes but the last one in a repository's directory name. No name contains it. So all
// repositories are at the same depth, and none is inside another one's clone or mirror.
const groupSeparator = "+"

// repoPath returns the directory and the file name of a repository, below the directory of mirrors or of a thread's
// clones.
func repoPath(repo string) (dir, name string) {
	last := strings.LastIndexByte(repo, '/')
	return strings.ReplaceAll(repo[:max(last, 0)], "/", groupSeparator), repo[last+1:]
}

// repoAt is the reverse of repoPath.
func repoAt(dir, name string) string {
	return strings.ReplaceAll(dir, groupSeparator, "/") + "/" + name
}

// threadDir returns the directory of one thread. Its name is readable and, because of a hash, unique to the thread.
func (w *Workspace) threadDir(thread string) string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(thread), "-"), "-")
	slug = slug[:min(len(slug), 40)]
	name := fmt.Sprintf("%s-%x", slug, sha256.Sum256([]byte(thread)))
	return filepath.Join(w.cfg.Dir, "threads", name[:len(slug)+1+16])
}

func (w *Workspace) cloneDir(thread, repo string) string {
	dir, name := repoPath(repo)
	return filepath.Join(w.threadDir(thread), "repos", dir, name)
}

// Scratch returns the thread's directory for work without a repository. It starts empty and is kept between runs.
func (w *Workspace) Scratch(thread string) (string, error) { return w.subdir(thread, "scratch") }

// Files returns the thread's directory for files given to the agent. It is outside every clone, so the files never get
// into a commit. An agent may have written there, so use os.Root to add files.
func (w *Workspace) Files(thread string) (string, error) { return w.subdir(thread, "files") }

// FilesApart returns a directory like Files for work of the thread that must not see what is there. Each name, in
// lower-case hexadecimal digits, has its own.
func FilesApart(w *Workspace, thread, name string) (string, error) {
	return w.subdir(thread, "files-"+name)
}

func (w *Workspace) subdir(thread, name string) (_ string, err error) {
	defer wrap(&err, "make %s", name)
	if thread == "" {
		return "", errors.New("the thread has no name")
	}
	if err := w.name(thread, false); err != nil {
		return "", err
	}
	dir := filepath.Join(w.threadDir(thread), name)
	// A link in its place would lead the caller somewhere else.
	if fi, err := os.Lstat(dir); err == nil && !fi.IsDir() {
		if err := os.Remove(dir); err != nil {
			return "", err
		}
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// remote is the origin of a repository, with the credential for it.
type remote struct {
	url, username, password string

	transport http.RoundTripper
	change    *update // the change that may be pushed; nil: read only
}

func (w *Workspace) remote(ctx context.Context, repo string) (remote, error) {
	r := remote{url: w.cfg.URL(repo), transport: w.transport}
	// The URL is in git's arguments and messages.
	if u, err := url.Parse(r.url); err == nil && u.User != nil {
		return remote{}, errors.New("the URL holds a credential")
	}
	if w.cfg.Credential == nil {
		return r, nil
	}
	var err error
	if r.username, r.password, err = w.cfg.Credential(ctx, repo); err != nil {
		return remote{}, fmt.Errorf("credential: %w", err)
	}
	// The header that carries both would end the name at a colon, and cannot contain a line break.
	if strings.ContainsAny(r.username+r.password, "\n\r\x00") || strings.Contains(r.username, ":") {
		return remote{}, errors.New("the credential holds a line break, or its name a colon")
	}
	return r, nil
}

// push moves a branch of the remote to commit if it still is at was ("": it does not exist). The remote compares, so
// no other commits are lost.
func (m mirror) push(ctx context.Context, r remote, commit, branch, was string) error {
	ref := "refs/heads/" + branch
	r.change = &update{from: was, to: commit, ref: ref}
	_, err := m.git.remotely(ctx, r, "push", "--quiet", "--no-verify", "--no-signed", "--no-follow-tags",
		"--recurse-submodules=no",
		"--force-with-lease="+ref+":"+was, "--", r.url, commit+":"+ref)
	return pushError(err)
}

// maxRefusal bounds the quoted part of the remote's message.
const maxRefusal = 500

// pushError classifies the failure of a push. The phrases are those of git 2.31 to 2.50 (transport.c). The text in
// brackets and the lines "remote: " are the remote's.
func pushError(err error) error {
	refused, ok := errors.AsType[*gitError](err)
	if !ok {
		return err
	}
	reason, said := "", ""
	for line := range strings.Lines(refused.stderr) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if words, found := strings.CutPrefix(line, "remote:"); found {
			said = strings.TrimSpace(said + " " + strings.Trim(words, " -"))
		}
		if strings.HasPrefix(line, "! [") {
			if _, after, found := strings.Cut(line, " ("); found {
				reason = strings.TrimSuffix(after, ")")
			}
		}
	}
	switch {
	case reason == "stale info", reason == "fetch first", reason == "non-fast-forward":
		return fmt.Errorf("%w: it has just moved", ErrForeign)
	case reason != "" && said != "":
		reason += ": " + said
	case reason == "":
		return remoteError(err)
	}
	return fmt.Errorf("%w: %s", ErrRejected, strings.ToValidUTF8(reason[:min(len(reason), maxRefusal)], ""))
}
