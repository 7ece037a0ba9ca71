package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

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
