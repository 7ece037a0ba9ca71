package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// shadow is a git directory of ours for the work tree of a clone in which an agent may be at work. What the agent's
// git directory says of commits and files is copied; what it could say to be executed, or followed elsewhere, is not.
type shadow struct {
	dir        string
	git        git
	files      *os.Root // the work tree
	unfinished []string // what git was in the middle of, which is not copied
}

// extent is how much of a git directory is copied.
type extent struct {
	// parts say what is in it. What one of them names is in a later one, so that nothing is missing that the agent
	// adds meanwhile.
	parts []string
	room  int64 // bytes. The objects of a clone are those that the agent made, as it borrows all others.
}

var (
	latest   = extent{[]string{"HEAD", "index", "info/exclude", "refs/heads", "refs/stash", "packed-refs", "objects"}, 256 << 20}
	entirely = extent{[]string{"logs", "HEAD", "index", "info/exclude", "refs", "packed-refs", "objects"}, math.MaxInt64}

	object = regexp.MustCompile(`^objects/([0-9a-f]{2}/[0-9a-f]{38}|pack/pack-[0-9a-f]{40}\.(pack|idx))$`)

	unfinished = []struct{ name, means string }{
		{"MERGE_HEAD", "the merge in progress"},
		{"CHERRY_PICK_HEAD", "the cherry-pick in progress"},
		{"REVERT_HEAD", "the revert in progress"},
		{"rebase-merge", "the rebase in progress"},
		{"rebase-apply", "the rebase in progress"},
		{"BISECT_LOG", "the bisection in progress"},
	}
)

// newShadow is called with the thread's lock held. Whoever gets one removes it.
func newShadow(ctx context.Context, c clone, x extent) (*shadow, error) {
	s := &shadow{dir: c.beside("snap")}
	s.git = c.mirror.git.in(s.dir)
	s.git.conf = append(slices.Clip(s.git.conf), "core.untrackedCache=false", "pack.threads=1",
		"core.bigFileThreshold=1m", "pack.windowMemory=16m") // a worker packs beside its runs, whose memory was reckoned without it
	err := removeAll(s.dir) // a killed worker's
	for name, content := range map[string]string{
		"config": cloneConfig, "objects/info/alternates": filepath.Join(c.mirror.dir, "objects") + "\n",
	} {
		path := filepath.Join(s.dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
	}
	if err == nil {
		s.files, err = os.OpenRoot(c.dir)
	}
	if err == nil {
		err = s.copy(ctx, x)
	}
	if err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *shadow) remove() {
	if s.files != nil {
		s.files.Close()
	}
	_ = removeAll(s.dir) // the next one would do it
}

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
	for _, part := range x.parts {
		err := fs.WalkDir(from.FS(), part, func(name string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, fs.ErrNotExist):
				return nil // not there, or not any more
			case err != nil:
				return err
			case !d.Type().IsRegular(), strings.HasPrefix(name, "objects/") && !object.MatchString(name):
				return nil
			}
			return s.take(from, name, &x.room)
		})
		if err != nil {
			return fmt.Errorf("copy %s: %w", part, err)
		}
	}
	return nil
}

// take copies one file, if it is there and is one.
func (s *shadow) take(from *os.Root, name string, room *int64) error {
	f, size, err := openFile(from, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFile) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if *room -= size; *room < 0 {
		return errLong
	}
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.LimitReader(f, size))
	return errors.Join(err, to.Close())
}

var errNoFile = errors.New("not a regular file")

// openFile opens a regular file and tells its size. To open a pipe would wait for its other end, if it were not asked
// not to.
func openFile(root *os.Root, name string) (*os.File, int64, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// rev is the SHA behind a name.
func (s *shadow) rev(ctx context.Context, name string) (string, error) {
	out, err := s.git.run(ctx, "rev-parse", "--verify", name)
	return strings.TrimSpace(out), err
}

// reveal makes git look again at files that an agent told it not to look at. Those that hide has marked stay so: what
// is there in their place is ours. So do those that are not there: a sparse checkout leaves them out.
func (s *shadow) reveal(ctx context.Context) error {
	out, err := s.git.run(ctx, "ls-files", "-v", "-z")
	if _, failed := errors.AsType[*gitError](err); failed {
		return nil // an index that is none; changes makes one of HEAD
	} else if err != nil {
		return err
	}
	var names strings.Builder
	for entry := range strings.SplitSeq(out, "\x00") { // "H name"; S for one to be skipped, small for one that is assumed to be as it was
		tag, name, found := strings.Cut(entry, " ")
		if !found || tag != "S" && tag == strings.ToUpper(tag) || isAgentConfig(name) {
			continue
		}
		if _, err := s.files.Lstat(name); err == nil {
			names.WriteString(name + "\x00")
		}
	}
	// One at a time: each of the options turns off the other.
	for _, option := range []string{"--no-assume-unchanged", "--no-skip-worktree"} {
		if names.Len() > 0 && err == nil {
			_, err = s.git.reading(names.String()).run(ctx, "update-index", option, "-z", "--stdin")
		}
	}
	return err
}

// nested lists where the clone holds other repositories, or other work trees of its own: submodules, and what an agent
// has cloned into it and added. Git looks at no more of them than which commit they are at.
func (s *shadow) nested(ctx context.Context) (found []string, err error) {
	// Git's own places for the repositories of submodules and for work trees; it removes the latter with the last one.
	places := []string{".git/modules", ".git/worktrees"}
	out, err := s.git.run(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") { // "160000 <object> <stage>\t<name>"
		if meta, name, _ := strings.Cut(entry, "\t"); strings.HasPrefix(meta, "160000 ") {
			places = append(places, name)
		}
	}
	for _, dir := range places {
		if info, err := s.files.Lstat(dir); err != nil || !info.IsDir() || s.throughLink(dir) {
			continue // not there; what is in its place is a change as any
		}
		entries, err := fs.ReadDir(s.files.FS(), dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
			found = append(found, dir)
		}
	}
	return found, nil
}
