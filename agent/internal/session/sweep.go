package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"golang.org/x/sys/unix"
)

// A keeper ends its run when its worker dies. What is swept here is the rest: processes whose keeper was killed as well, and the
// directories of runs that neither could remove. Several workers share a machine, so nothing is touched that could be a living one's.
//
// Whose a process is, a marker in its environment says. Whose a directory is, a lock in it says: the kernel gives it up with its holder,
// and it holds across containers that share the directory but cannot see each other's processes.

// Sweep ends what dead workers of this machine have left behind: KILL for every process that carries the mark of one, until none is left,
// and then their runs' directories below Config.TempDir are removed. It is meant for the start of a worker, and waits no longer than
// 10 s. The error says what is left; that does no harm to new runs.
//
// A process of another user, or of a worker in another container, is not touched.
func (r *Runner) Sweep(ctx context.Context) error {
	processes, err := keeper.SweepDeadWorkers(ctx)
	directories, derr := sweepDirs(r.tempDir())
	if processes+directories > 0 {
		r.log.Warn("swept what dead workers had left", "processes", processes, "directories", directories)
	}
	return errors.Join(err, derr)
}

func (r *Runner) tempDir() string {
	if r.cfg.TempDir == "" {
		return os.TempDir()
	}
	return r.cfg.TempDir
}

// lockFile is in each run's directory, locked while its worker lives. A directory without one is not ours, or not yet.
const lockFile = "errand.lock"

// claimDir locks a new directory for as long as this process lives. The file gets its name once it is locked, so that nobody finds it as
// that of a dead worker.
func claimDir(root string) (*os.File, error) {
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

// sweepDirs removes the directories of dead workers' runs and returns how many.
func sweepDirs(parent string) (removed int, err error) {
	locks, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*", lockFile))
	if err != nil {
		return 0, fmt.Errorf("list run directories: %w", err)
	}
	var errs []error
	for _, name := range locks {
		root := filepath.Dir(name)
		gone, err := sweepDir(root, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", root, err))
		}
		if gone {
			removed++
		}
	}
	return removed, errors.Join(errs...)
}

// sweepDir removes one directory unless its worker lives. That it belongs to somebody else, or that another sweep is faster, is fine.
func sweepDir(root, lock string) (removed bool, err error) {
	// Not through a link: what is in the directory the agent may have written. And a pipe must not hold us up.
	f, err := os.OpenFile(lock, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, nil // another user's, or gone
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, nil
	}
	if err := os.RemoveAll(root); err != nil {
		return false, err
	}
	return true, nil
}
