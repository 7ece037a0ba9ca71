package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is the interval between attempts. flock(2) can wait, but not until a context ends.
const lockPoll = 50 * time.Millisecond

// lock takes the lock at path, waiting until ctx ends. Lock threads before mirrors.
//
// The git processes under a lock inherit it (git.holding). If this process is killed, the lock lasts until its orphans
// are gone too. So the holder of a lock knows that nothing else writes there, and that git's lock and temporary files
// found there are leftovers. The lock file is never removed: otherwise two holders could lock two files of one name.
func lock(ctx context.Context, path string) (*os.File, error) { return wait(ctx, path, unix.LOCK_EX) }

// share takes a shared lock at path.
func share(ctx context.Context, path string) (*os.File, error) { return wait(ctx, path, unix.LOCK_SH) }

// tryLock takes the lock at path if it is free, and returns nil otherwise.
func tryLock(path string) (*os.File, error) { return try(path, unix.LOCK_EX) }

func wait(ctx context.Context, path string, how int) (*os.File, error) {
	for {
		if f, err := try(path, how); f != nil || err != nil {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", filepath.Base(path), context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

func try(path string, how int) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", filepath.Base(path), err)
}

// unlock unlocks explicitly: closing has no effect while another process has the file open.
func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // cannot fail on a locked file
	f.Close()
}

// An untouched directory of a thread is better than any bundle of it, because it also has the ignored files. A token
// in a file beside the directories shows that they are untouched.

// Leave records that nothing runs in the thread's directories any more. A later Enter that returns the same token
// finds them unchanged.
func (w *Workspace) Leave(thread string) (token string, err error) {
	token = rand.Text()
	if err := os.MkdirAll(w.threadDir(thread), 0o700); err != nil {
		return "", fmt.Errorf("leave thread: %w", err)
	}
	if err := os.WriteFile(w.leftFile(thread), []byte(token), 0o600); err != nil {
		return "", fmt.Errorf("leave thread: %w", err)
	}
	return token, nil
}

// Enter must be called before a run begins in the thread's directories. It returns the token of the last Leave once.
// The token is empty if there was another Enter since, or on another machine.
func (w *Workspace) Enter(thread string) (token string, err error) {
	if err := w.name(thread, true); err != nil {
		return "", fmt.Errorf("enter thread: %w", err)
	}
	name := w.leftFile(thread)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = os.Remove(name)
	}
	if err != nil {
		return "", fmt.Errorf("enter thread: %w", err)
	}
	return string(data), nil
}

const leftName = ".left"

func (w *Workspace) leftFile(thread string) string {
	return filepath.Join(w.threadDir(thread), leftName)
}
