package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A link that cannot be removed from a read-only directory is not followed.
func TestRemoveAllFollowsNoLink(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	outside, clone := filepath.Join(root, "outside"), filepath.Join(root, "clone")
	write(t, outside+"/x", "x")
	write(t, clone+"/.git", "-> ../outside")
	err := asNobody(t, root, func() error {
		if err := errors.Join(os.Chmod(outside, 0o500), os.Chmod(clone, 0o500)); err != nil {
			return err
		}
		return removeAll(clone + "/.git")
	})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("removed: %v", err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v, %v", info, err)
	}
}
