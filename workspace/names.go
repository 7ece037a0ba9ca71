package workspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// A name has an owner, or a host and nested groups, before its last slash. No segment begins with a dash, and none but the last with a
	// dot: acme/.github exists.
	repoName = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/)+\.?[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	fullSHA  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	// notInRef is what git check-ref-format forbids; without it a name can be no revision expression (main~1, a..b).
	notInRef = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|^[-/.]|[/.]$`)
	// refs that a mirror holds; others there are our own.
	mirrored = regexp.MustCompile(`^refs/(heads|tags|pull)/`)
	// refs of a clone that are the agent's.
	ownRef  = regexp.MustCompile(`^refs/(heads/.|stash$)`)
	notSlug = regexp.MustCompile(`[^a-z0-9]+`)
)

// check refuses what must not become a path or an argument. The meaning of the errors is the user's mistake.
func (w Want) check() error {
	if w.Thread == "" {
		return errors.New("the thread has no name")
	}
	if err := checkRepo(w.Repo); err != nil {
		return err
	}
	for _, ref := range []string{w.Ref, w.Base, w.Own} {
		foreign := strings.HasPrefix(ref, "refs/") && !mirrored.MatchString(ref)
		if len(ref) > 1024 || notInRef.MatchString(ref) || foreign {
			return fmt.Errorf("%w: %.100q is not a name for one", ErrRef, ref)
		}
	}
	return nil
}

// maxRepoName bounds a whole name, so that the directory of its groups has a name that file systems accept.
const maxRepoName = 200

func checkRepo(repo string) error {
	if len(repo) > maxRepoName || !repoName.MatchString(repo) || strings.Contains(repo, "..") || strings.HasSuffix(repo, "/.git") {
		return fmt.Errorf("%w: %.100q is not the name of a repository", ErrNotFound, repo)
	}
	return nil
}

// groupSeparator stands for the slashes before the last one in the name of a repository's directory. No name contains it. So all
// repositories are at the same depth, and none lies within another one's clone or mirror.
const groupSeparator = "+"

// repoPath returns the directory and the file name of a repository, below the directory of mirrors or of a thread's clones.
func repoPath(repo string) (dir, name string) {
	last := strings.LastIndexByte(repo, '/')
	return strings.ReplaceAll(repo[:max(last, 0)], "/", groupSeparator), repo[last+1:]
}

// repoAt is the reverse of repoPath.
func repoAt(dir, name string) string {
	return strings.ReplaceAll(dir, groupSeparator, "/") + "/" + name
}

// threadDir is everything of one thread. The name is readable and, by its hash, never that of another thread.
func (w *Workspace) threadDir(thread string) string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(thread), "-"), "-")
	slug = slug[:min(len(slug), 40)]
	return filepath.Join(w.cfg.Dir, "threads", fmt.Sprintf("%s-%x", slug, sha256.Sum256([]byte(thread)))[:len(slug)+1+16])
}

func (w *Workspace) cloneDir(thread, repo string) string {
	dir, name := repoPath(repo)
	return filepath.Join(w.threadDir(thread), "repos", dir, name)
}

// Scratch is the thread's directory for work without a repository. It is empty at first and kept between runs.
func (w *Workspace) Scratch(thread string) (string, error) { return w.subdir(thread, "scratch") }

// Files is the thread's directory for files given to the agent; it is outside every clone, so they never get into
// a commit. An agent may have written there: go through os.Root to put something into it.
func (w *Workspace) Files(thread string) (string, error) { return w.subdir(thread, "files") }

func (w *Workspace) subdir(thread, name string) (string, error) {
	if thread == "" {
		return "", fmt.Errorf("make %s: the thread has no name", name)
	}
	if err := w.name(thread, false); err != nil {
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	dir := filepath.Join(w.threadDir(thread), name)
	// A link in its place would lead our caller somewhere else.
	if fi, err := os.Lstat(dir); err == nil && !fi.IsDir() {
		if err := os.Remove(dir); err != nil {
			return "", fmt.Errorf("make %s: %w", name, err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	return dir, nil
}
