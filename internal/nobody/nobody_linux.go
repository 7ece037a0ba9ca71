// Package nobody calls functions of tests as an ordinary user.
package nobody

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Call calls f so that the permissions of dir and below apply. For root they do not, so f then runs on a thread without
// root's rights to files, which ends with its goroutine.
func Call(t *testing.T, dir string, f func() error) error {
	t.Helper()
	const nobody = 65534
	if os.Geteuid() == 0 {
		// Give it access, from the test's temporary directory to the last file.
		for _, up := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir)} {
			if up == os.TempDir() {
				continue
			}
			if err := os.Chmod(up, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, nobody, nobody))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		if os.Geteuid() == 0 {
			if _, err := unix.SetfsuidRetUid(nobody); err != nil {
				done <- err
				return
			}
		}
		done <- f()
	}()
	return <-done
}
