package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
	"github.com/errand-fleet/errand/internal/dirtree"
)

// Dirs are the directories of one run. Each run has its own, because sessions that share a configuration see one
// another and can exchange messages (CLI 2.1.329), and because a home that outlived its run would lead from one run to
// the next.
type Dirs struct {
	Root, Config, Temp, Home string

	InsideRoot string // Root as the run sees it; empty: the same
	InsideHome string // Home as the run sees it; empty: in InsideRoot

	lock *os.File
}

const (
	prefix   = "er-"              // of the names of runs' directories
	lockFile = supervise.LockFile // in each of them
	// leaves room for the Unix sockets that the CLI makes there; a socket's path has at most 107 bytes
	maxTempDir = 60
)

func dirsIn(root string) Dirs {
	return Dirs{
		Root: root, Config: filepath.Join(root, "c"), Temp: filepath.Join(root, "t"), Home: filepath.Join(root, "h"),
	}
}

var errTooLong = errors.New("choose a shorter TMPDIR")

// Remedy returns what to do about an error of Make.
func Remedy(err error) string {
	if errors.Is(err, errTooLong) {
		return errTooLong.Error()
	}
	return "make the temporary directory writable"
}

// Make creates the directories of a run below parent; empty means the system's directory for temporary files.
func Make(parent string) (Dirs, error) {
	root, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return Dirs{}, fmt.Errorf("create run directory: %w", err)
	}
	d := dirsIn(root)
	if len(d.Temp) > maxTempDir {
		_ = os.Remove(root)
		return Dirs{}, fmt.Errorf("create run directory: %s is longer than %d bytes: %w", d.Temp,
			maxTempDir, errTooLong)
	}
	err = errors.Join(os.Mkdir(d.Config, 0o700), os.Mkdir(d.Temp, 0o700), os.Mkdir(d.Home, 0o700))
	if err == nil {
		d.lock, err = lockDir(root)
	}
	if err != nil {
		_ = os.RemoveAll(root)
		return Dirs{}, fmt.Errorf("create run directory: %w", err)
	}
	return d, nil
}

// lockDir locks a new directory for as long as this process lives. The file gets its name once it is locked, so that no
// Sweep mistakes it for that of a dead worker.
func lockDir(root string) (*os.File, error) {
	f, err := os.Create(filepath.Join(root, lockFile+".new"))
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(root, lockFile))
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock: %w", err)
	}
	return f, nil
}

// Inside returns the directories as the run sees them.
func (d Dirs) Inside() Dirs {
	if d.InsideRoot == "" {
		return d
	}
	inside := dirsIn(d.InsideRoot)
	inside.Home = cmp.Or(d.InsideHome, inside.Home)
	return inside
}

// WriteJSON writes a file for the CLI, readable for this user only, and returns its path as the CLI sees it.
func (d Dirs) WriteJSON(name string, v any) (string, error) {
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.Root, name), data, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return filepath.Join(d.Inside().Root, name), nil
}

// Remove removes the directories.
func (d Dirs) Remove() error {
	err := dirtree.Remove(d.Root, lockFile)
	_ = d.lock.Close()
	return err
}

// Sweep removes the directories of dead workers' runs below parent and returns how many. Several workers may share the
// parent, also from containers that cannot see each other's processes: a directory belongs to a live worker while its
// lock is held, and the kernel releases the lock when the holder dies. A directory without a lock file is not a run's,
// or not yet.
func Sweep(parent string) (removed int, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	dirs, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return 0, fmt.Errorf("list run directories: %w", err)
	}
	var errs []error
	for _, dir := range dirs {
		ok, err := sweepDir(dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", dir, err))
		}
		if ok {
			removed++
		}
	}
	return removed, errors.Join(errs...)
}

// sweepDir removes a directory with a lock unless its worker lives. Directories of other users, and those that another
// sweep removes at the same time, are no error.
func sweepDir(dir string) (removed bool, err error) {
	f, err := openLock(dir)
	if err != nil {
		return false, nil // another user's, or gone
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, nil
	}
	if err := dirtree.Remove(dir, lockFile); err != nil {
		return false, err
	}
	return true, nil
}

// openLock opens the lock of a directory to which an agent may have written: it follows no link and waits for no pipe.
// The agent may have taken the permissions from the directory, too.
func openLock(dir string) (*os.File, error) {
	lock := filepath.Join(dir, lockFile)
	const flags = os.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(lock, flags, 0)
	if !errors.Is(err, fs.ErrPermission) || dirtree.Permit(dir) != nil {
		return f, err
	}
	return os.OpenFile(lock, flags, 0)
}
