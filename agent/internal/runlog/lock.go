package runlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another run writes the log.
var ErrLocked = errors.New("the run is active")

// Lock reserves the log of a run, in all processes of the machine, until release is called or this process is dead.
func Lock(dir, id string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, id+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = f.Close()
		return nil, ErrLocked
	}
	// A file system without locks is no reason to refuse all runs.
	return func() {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // a child that is being started may have it open a moment longer
		_ = f.Close()
	}, nil
}
