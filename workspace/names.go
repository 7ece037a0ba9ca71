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
	repoName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/\.?[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`) // acme/.github exists
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

func checkRepo(repo string) error {
	if !repoName.MatchString(repo) || strings.Contains(repo, "..") || strings.HasSuffix(repo, "/.git") {
		return fmt.Errorf("%w: %.100q is not owner/name", ErrNotFound, repo)
	}
	return nil
}

// threadDir is everything of one thread. The name is readable and, by its hash, never that of another thread.
func (w *Workspace) threadDir(thread string) string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(thread), "-"), "-")
	slug = slug[:min(len(slug), 40)]
	return filepath.Join(w.cfg.Dir, "threads", fmt.Sprintf("%s-%x", slug, sha256.Sum256([]byte(thread)))[:len(slug)+1+16])
}

func (w *Workspace) cloneDir(thread, repo string) string {
	return filepath.Join(w.threadDir(thread), "repos", repo)
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
