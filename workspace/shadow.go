package workspace

import (
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // git's IDs
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// shadow is errand's own git directory for the work tree of a clone in which an agent may be running. It copies
// commits and the index from the agent's git directory, but nothing that git would execute or follow elsewhere. All
// that moves or shows the work of a run reads it through a shadow. Git does not compare an object that it reads with
// its ID, so an agent could replace even those that the mirror has. Those of a shadow are what their IDs say.
type shadow struct {
	dir        string
	clone      clone
	git        git
	files      *os.Root  // the work tree
	head       string    // the SHA checked out
	headTree   string    // its tree
	indexed    time.Time // when the agent's index was written; zero: there is none
	unfinished []string  // operations that git had not finished, and flags; they are not copied
	flags      bool      // the index keeps those that reveal clears
	release    func()    // unlocks the thread
}

// extent selects how much of a git directory is copied.
type extent struct {
	// parts are the copied parts. Each refers only to later ones, so that nothing is missing that the agent adds
	// meanwhile. The index has most of its entries in a shared one if it is split.
	parts []string
	room  int64 // bytes. A clone has only the objects that the agent created; it borrows all others.
}

var (
	latest = extent{room: 256 << 20, parts: strings.Fields(
		"HEAD index sharedindex.* info/exclude refs/heads refs/stash packed-refs objects")}
	entirely = extent{room: math.MaxInt64, parts: strings.Fields(
		"logs HEAD index sharedindex.* info/exclude refs packed-refs objects")}

	object = regexp.MustCompile(`^objects/([0-9a-f]{2}/[0-9a-f]{38}|pack/pack-[0-9a-f]{40}\.pack)$`)

	unfinished = []struct{ name, means string }{
		{"MERGE_HEAD", "the merge in progress"},
		{"CHERRY_PICK_HEAD", "the cherry-pick in progress"},
		{"REVERT_HEAD", "the revert in progress"},
		{"rebase-merge", "the rebase in progress"},
		{"rebase-apply", "the rebase in progress"},
		{"BISECT_LOG", "the bisection in progress"},
	}
)

// bounded lets git give up on an object that takes more memory, because a few bytes of an agent may unpack to any size.
const bounded = "GIT_ALLOC_LIMIT=512m"

// shadow creates a shadow of c. It locks the thread of c until the shadow is removed.
func (w *Workspace) shadow(ctx context.Context, c Clone, x extent) (*shadow, error) {
	own, release, err := w.reach(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &shadow{dir: own.beside("snap"), clone: own, release: release}
	s.git = own.mirror.git.in(s.dir).configured("core.untrackedCache=false", "pack.threads=1",
		// Packing runs beside the runs, in memory that is not reserved for it.
		"core.bigFileThreshold=1m", "pack.windowMemory=16m").having(bounded)
	if err := s.fill(ctx, x); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// remove removes the shadow and unlocks the thread.
func (s *shadow) remove() {
	if s.files != nil {
		s.files.Close()
	}
	_ = dirtree.Remove(s.dir) // otherwise the next shadow removes it
	s.release()
}

// fill makes the git directory with what it copies from the agent's.
func (s *shadow) fill(ctx context.Context, x extent) (err error) {
	// A killed worker may have left it. Git requires a directory of refs, and the agent's may all be packed.
	if err := errors.Join(dirtree.Remove(s.dir), os.MkdirAll(filepath.Join(s.dir, "refs"), 0o700)); err != nil {
		return err
	}
	for name, content := range map[string]string{
		// Publishing fetches commits that no ref leads to.
		"config":                  cloneConfig + "[uploadpack]\n	allowAnySHA1InWant = true\n",
		"objects/info/alternates": filepath.Join(s.clone.mirror.dir, "objects") + "\n",
		"info/attributes":         "* !diff\n", // or an agent could have git take a text for binary, which hides it
	} {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	if s.files, err = os.OpenRoot(s.clone.dir); err != nil {
		return err
	}
	if err := s.copy(ctx, x); err != nil {
		return err
	}
	// "--": git takes no name for that of a file, of which it would print the name. It prints a line "--".
	out, err := s.git.run(ctx, "rev-parse", "HEAD^{commit}", "HEAD^{tree}", "--")
	if err != nil {
		return err
	}
	s.head, out, _ = strings.Cut(out, "\n")
	s.headTree, _, _ = strings.Cut(out, "\n")
	if !s.indexed.IsZero() {
		return nil
	}
	return s.inTree().renewIndex(ctx, s.head) // an agent has removed it
}

// inTree returns a git that looks at the work tree.
func (s *shadow) inTree() git { g := s.git; g.tree = s.files.Name(); return g }

// copy fills the shadow from the agent's git directory.
func (s *shadow) copy(ctx context.Context, x extent) error {
	from, err := s.files.OpenRoot(".git")
	if err != nil {
		return err
	}
	defer from.Close()
	for _, u := range unfinished {
		if _, err := from.Lstat(u.name); err == nil {
			s.unfinished = append(s.unfinished, u.means)
		}
	}
	for _, pattern := range x.parts {
		parts, err := matching(from.FS(), pattern)
		if err != nil {
			return fmt.Errorf("list %s: %w", pattern, err)
		}
		for _, part := range parts {
			if err := s.copyPart(ctx, from, part, &x.room); err != nil {
				return fmt.Errorf("copy %s: %w", part, err)
			}
		}
	}
	return nil
}

// matching returns a name, or those in a directory that begin with what comes before its star. Unlike fs.Glob, it
// ignores no error: without a part of the index, git could read none of it.
func matching(dir fs.FS, pattern string) (names []string, _ error) {
	prefix, starred := strings.CutSuffix(pattern, "*")
	if !starred {
		return []string{pattern}, nil
	}
	entries, err := fs.ReadDir(dir, ".")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// copyPart copies a file, or a directory with all that is in it.
func (s *shadow) copyPart(ctx context.Context, from *os.Root, part string, room *int64) error {
	return fs.WalkDir(from.FS(), part, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
			return nil // it does not exist, or no longer
		case err != nil:
			return err
		case !d.Type().IsRegular(), strings.HasPrefix(name, "objects/") && !object.MatchString(name):
			return nil
		}
		return s.take(ctx, from, name, room)
	})
}

// take copies one file if it exists and is a regular file.
func (s *shadow) take(ctx context.Context, from *os.Root, name string, room *int64) error {
	f, info, err := openFile(from, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFile) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if *room -= info.Size(); *room < 0 {
		return errLong
	}
	if name == "index" {
		s.indexed = info.ModTime()
	}
	content := io.LimitReader(f, info.Size())
	if filepath.Ext(name) == ".pack" { // git computes the IDs of its objects anew
		g := s.git
		g.stdin = content
		_, err := g.run(ctx, "index-pack", "--stdin")
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 128 {
			return nil // it is damaged
		}
		return err
	}
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := io.Copy(to, content); err != nil {
		return err
	}
	if object.MatchString(name) && !genuine(ctx, name, to) {
		return os.Remove(path)
	}
	return nil
}

// genuine reports whether the file f has the object that its name says.
func genuine(ctx context.Context, name string, f io.ReaderAt) bool {
	id := sha1.New() //nolint:gosec // git's IDs
	content, err := zlib.NewReader(io.NewSectionReader(f, 0, math.MaxInt64))
	for err == nil && ctx.Err() == nil { // a small file may have any size when it is unpacked
		_, err = io.CopyN(id, content, 1<<20)
	}
	return errors.Is(err, io.EOF) && fmt.Sprintf("objects%x", id.Sum(nil)) == strings.ReplaceAll(name, "/", "")
}

var errNoFile = errors.New("not a regular file")

// openFile opens a regular file. It does not block on a pipe without a writer.
func openFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// rev returns the SHA of a name.
func (s *shadow) rev(ctx context.Context, name string) (string, error) {
	out, err := s.git.run(ctx, "rev-parse", "--verify", name)
	return strings.TrimSpace(out), err
}

// reveal clears the index flags by which an agent made git ignore changes. Files that hide has marked keep the flag,
// because errand wrote what is in their place. So do missing files: a sparse checkout leaves them out.
func (s *shadow) reveal(ctx context.Context) error {
	out, err := s.git.run(ctx, "ls-files", "-v", "-z")
	if err != nil {
		return err
	}
	var names []string
	for entry := range strings.SplitSeq(out, "\x00") { // "H name"; S: skip-worktree, lower case: assume-unchanged
		tag, name, found := strings.Cut(entry, " ")
		if !found || tag != "S" && tag == strings.ToUpper(tag) || isAgentConfig(name) {
			continue
		}
		if _, err := s.files.Lstat(name); err == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	s.unfinished = append(s.unfinished, "the index flags of "+strings.Join(short(names), ", "))
	// Separately, because each option turns off the other.
	for _, option := range []string{"--no-assume-unchanged", "--no-skip-worktree"} {
		if err := s.git.updateIndex(ctx, strings.Join(names, "\x00"), option); err != nil {
			return err
		}
	}
	return nil
}
