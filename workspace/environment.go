package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// Environments are the environments on this machine. It is a Workspace's view, so several may be used.
type Environments struct{ w *Workspace }

// EnvironmentsOf returns the environments below the workspace's directory.
func EnvironmentsOf(w *Workspace) Environments { return Environments{w} }

// Environment is what the set-up of a repository has left: a home, and directories and files of the clone that git
// ignores. The runs of the repository on this machine share it, each with its own changes (Layers). Nothing changes it
// once it is complete.
type Environment struct {
	ID       string        `json:"id"`
	Repo     string        `json:"repo"`
	Created  time.Time     `json:"made"`
	Took     time.Duration `json:"took"` // by the set-up
	Size     int64         `json:"size"` // bytes of its files
	Dirs     []string      `json:"dirs"` // directories of the clone, relative to it
	SetUpDir string        `json:"seen"` // path of the clone during the set-up: its files may contain it
	Used     time.Time     `json:"-"`    // by the start of a run

	// Files are ignored files outside of Dirs, relative to the clone, such as extensions compiled beside their sources.
	Files []string `json:"files,omitempty"`

	dir string
}

const (
	environmentFile = "environment.json"
	environmentHome = "home"
)

// path returns the directory of an environment. Its files .lock, .used and .tmp lie beside it.
func (s Environments) path(id string) string {
	return filepath.Join(s.w.cfg.Dir, "environments", id)
}

// Use returns the environment with an ID, and sets it up first if none exists. fill is called with a new clone of
// c's protected commit and a layer for the home; one process of the machine does that while the others wait. The
// environment stays until release is called. If fill fails, its error is returned as it is, and nothing is kept.
func (s Environments) Use(
	ctx context.Context, c Clone, id string, fill func(ctx context.Context, setUp Clone, home Layer) error,
) (e Environment, release func(), err error) {
	for {
		held, err := share(ctx, s.path(id)+".lock")
		if err != nil {
			return e, nil, fmt.Errorf("set up %s: %w", c.Repo, err)
		}
		if e, err = s.read(id); err == nil {
			_ = os.WriteFile(s.path(id)+".used", nil, 0o600) // its time counts; a full disk must not prevent the run
			return e, func() { unlock(held) }, nil
		}
		unlock(held)
		if err := s.make(ctx, c, id, fill); err != nil {
			return e, nil, err
		}
	}
}

func (s Environments) read(id string) (e Environment, err error) {
	dir := s.path(id)
	data, err := os.ReadFile(filepath.Join(dir, environmentFile))
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err != nil {
		return Environment{}, fmt.Errorf("read environment: %w", err)
	}
	e.dir, e.Used = dir, e.Created
	if info, err := os.Stat(dir + ".used"); err == nil {
		e.Used = info.ModTime()
	}
	return e, nil
}

// make sets up an environment, unless another process has done so meanwhile.
func (s Environments) make(
	ctx context.Context, c Clone, id string, fill func(ctx context.Context, setUp Clone, home Layer) error,
) (err error) {
	held, err := lock(ctx, s.path(id)+".lock")
	if err != nil {
		return fmt.Errorf("set up %s: %w", c.Repo, err)
	}
	defer unlock(held)
	if _, err := s.read(id); err == nil {
		return nil
	}
	begun := time.Now()
	setUp, tmp, err := s.begin(ctx, c, id)
	defer func() { err = errors.Join(err, s.abandon(tmp)) }() // what is left of it
	if err != nil {
		return fmt.Errorf("set up %s: %w", c.Repo, err)
	}
	home := Layer{Changes: filepath.Join(tmp, "work")}
	if err := fill(ctx, setUp, home); err != nil {
		return err
	}
	e := Environment{
		ID: id, Repo: c.Repo, Created: time.Now(), Took: time.Since(begun), SetUpDir: setUp.Dir, dir: tmp,
	}
	if err := s.finish(ctx, &e, setUp, home); err != nil {
		return fmt.Errorf("set up %s: %w", c.Repo, err)
	}
	if err := os.Rename(tmp, s.path(id)); err != nil {
		return fmt.Errorf("keep the environment of %s: %w", c.Repo, err)
	}
	_ = os.Remove(filepath.Join(s.path(id), threadOfSetUp))
	return throwAway(s.w, strings.TrimSuffix(setUp.Dir, filepath.FromSlash("/repos/"+c.Repo)))
}

// threadOfSetUp is a file in the directory of an incomplete environment: the name of the thread that has its clone.
const threadOfSetUp = "thread"

// begin makes the clone in which a set-up runs, and an empty directory for the environment. Both are new: if an earlier
// process was killed, its set-up may live for some seconds.
func (s Environments) begin(ctx context.Context, c Clone, id string) (_ Clone, tmp string, err error) {
	thread := "environment/" + id + "/" + rand.Text()
	if tmp, err = os.MkdirTemp(s.path(""), id+incomplete); err != nil {
		return Clone{}, "", err
	}
	if err := os.WriteFile(filepath.Join(tmp, threadOfSetUp), []byte(thread), 0o600); err != nil {
		return Clone{}, tmp, err
	}
	setUp, err := s.w.Checkout(ctx, Want{
		Thread: thread, Repo: c.Repo, Ref: c.ProtectedSHA, Protected: c.Protected,
	})
	return setUp, tmp, err
}

// incomplete is in the name of the directory of an environment whose set-up has not ended.
const incomplete = ".tmp-"

// abandon moves what an incomplete environment has left to the trash, with its clone, which may contain secrets.
func (s Environments) abandon(tmp string) error {
	thread, err := os.ReadFile(filepath.Join(tmp, threadOfSetUp))
	if err != nil { // it is complete, or never began
		return nil //nolint:nilerr // as it says
	}
	for _, dir := range []string{s.w.threadDir(string(thread)), tmp} {
		if moved := throwAway(s.w, dir); !errors.Is(moved, fs.ErrNotExist) {
			err = errors.Join(err, moved)
		}
	}
	return err
}

// finish moves what a set-up has left to the directory of its environment, and describes it there.
func (s Environments) finish(ctx context.Context, e *Environment, setUp Clone, home Layer) error {
	if err := os.Rename(filepath.Join(home.Changes, "upper"), filepath.Join(e.dir, environmentHome)); err != nil {
		return err
	}
	if err := dirtree.Remove(home.Changes); err != nil {
		return err
	}
	own, release, err := s.w.reach(ctx, setUp)
	if err != nil {
		return err
	}
	defer release()
	var files []string
	if e.Dirs, files, err = own.ignored(ctx); err != nil {
		return err
	}
	e.Size = diskSize(ctx, filepath.Join(e.dir, environmentHome))
	if err := e.takeFiles(setUp.Dir, files); err != nil {
		return err
	}
	for i, name := range e.Dirs {
		dir := filepath.Join(e.dir, strconv.Itoa(i))
		if err := os.Rename(filepath.Join(setUp.Dir, name), dir); err != nil {
			return err
		}
		e.Size += diskSize(ctx, dir)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.dir, environmentFile), data, 0o600)
}

// maxEnvironmentDirs bounds the directories of an environment: each is a mount of every run. The largest are kept.
const maxEnvironmentDirs = 50

// ignored lists the directories of a clone that git ignores, and the ignored files that are in none of them.
func (c clone) ignored(ctx context.Context) (dirs, files []string, err error) {
	if err := c.secure(); err != nil {
		return nil, nil, err
	}
	out, err := c.git.run(ctx, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
	if err != nil {
		return nil, nil, err
	}
	names := strings.Split(out, "\x00")
	slices.Sort(names) // a directory comes before those inside it
	for _, name := range names {
		dir, is := strings.CutSuffix(name, "/")
		inside := slices.ContainsFunc(dirs, func(outer string) bool { return strings.HasPrefix(name, outer+"/") })
		switch {
		case inside || !filepath.IsLocal(dir):
		case is:
			dirs = append(dirs, dir)
		default:
			files = append(files, name)
		}
	}
	if len(dirs) > maxEnvironmentDirs {
		size := map[string]int64{}
		for _, dir := range dirs {
			size[dir] = diskSize(ctx, filepath.Join(c.dir, dir))
		}
		slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(size[b], size[a]) })
		dirs = dirs[:maxEnvironmentDirs]
		slices.Sort(dirs)
	}
	return dirs, files, nil
}

// Versions returns the object IDs of files and directories of the protected branch at c.ProtectedSHA, in order: the
// same ID means the same content. One that does not exist has the ID "".
func (s Environments) Versions(ctx context.Context, c Clone, names []string) (ids []string, err error) {
	defer wrap(&err, "look for files in %s", c.Repo)
	own, release, err := s.w.reach(ctx, c)
	if err != nil {
		return nil, err
	}
	defer release()
	var ask strings.Builder
	for _, name := range names {
		if strings.ContainsAny(name, "\n\x00") {
			return nil, fmt.Errorf("%.100q is not the name of a file", name)
		}
		ask.WriteString(c.ProtectedSHA + ":" + name + "\n")
	}
	out, err := own.mirror.git.reading(ask.String()).run(ctx, "cat-file", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		id, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind != "blob" && kind != "tree" {
			id = ""
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// List lists the environments on this machine.
func (s Environments) List() ([]Environment, error) {
	names, err := list(s.path(""))
	if err != nil {
		return nil, fmt.Errorf("list environments: %w", err)
	}
	var all []Environment
	for _, name := range names {
		if e, err := s.read(name); err == nil {
			all = append(all, e)
		}
	}
	return all, nil
}

// Discard moves an environment to the trash, for Empty to remove. It returns false if a run uses it, or has since it
// was listed.
func (s Environments) Discard(e Environment) (bool, error) {
	held, err := tryLock(e.dir + ".lock")
	if held == nil || err != nil {
		return false, err
	}
	defer unlock(held)
	if now, err := s.read(e.ID); err != nil || !now.Used.Equal(e.Used) {
		return false, nil // it may have gone
	}
	if err := throwAway(s.w, e.dir); err != nil {
		return false, fmt.Errorf("discard environment: %w", err)
	}
	_ = os.Remove(e.dir + ".used")
	return true, nil
}

// removeIncomplete moves what set-ups have left that did not end, because their process was killed, to the trash.
func (s Environments) removeIncomplete() error {
	names, err := list(s.path(""))
	for _, name := range names {
		id, _, found := strings.Cut(name, incomplete)
		if !found {
			continue
		}
		held, lockErr := tryLock(s.path(id) + ".lock")
		if held != nil {
			lockErr = s.abandon(s.path(name))
			unlock(held)
		}
		err = errors.Join(err, lockErr)
	}
	return err
}
