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

// lockPoll is how often a waiter looks again. flock(2) can wait by itself, but not until a context ends.
const lockPoll = 50 * time.Millisecond

// lock takes the lock at path, waiting until ctx ends. Locks of threads come before locks of mirrors.
//
// The git processes that work under a lock inherit it (git.holding): if this process is killed, the lock lasts until its
// orphans are gone too, so whoever holds a lock knows that nothing else writes there, and that lock and temporary
// files of git found there are leftovers. The file stays: removing it would let two holders hold two files of one name.
func lock(ctx context.Context, path string) (*os.File, error) { return wait(ctx, path, unix.LOCK_EX) }

// share takes the lock at path together with others that share it.
func share(ctx context.Context, path string) (*os.File, error) { return wait(ctx, path, unix.LOCK_SH) }

// tryLock takes the lock at path if it is free; nil when it is not.
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

// unlock lets go explicitly: closing would not, as long as some process still has the file open.
func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // cannot fail on a file we locked
	f.Close()
}

// A thread's directories are worth more than any bundle of them, if they are there and nobody was in them since: they have the ignored
// files too. A token in a file beside them tells.

// Leave notes that nothing runs in the thread's directories any more. Whoever gets the token from Enter finds them as they are now.
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

// Enter is called before a run begins in the thread's directories. It tells the token of the last Leave, once; empty if there is none,
// because somebody has entered since, or on another machine.
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
