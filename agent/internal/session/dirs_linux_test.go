package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/internal/nobody"
)

// What a run leaves should go, also for a worker that is an ordinary user: Go makes the directories of its module cache
// read-only, and a tool may take all permissions from its own.
func TestRunDirectoriesWithoutPermissionsGo(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(d Dirs, temp string) error{
		"the run ends": func(d Dirs, _ string) error { return d.Remove() },
		"the worker is gone": func(d Dirs, temp string) error {
			_ = d.lock.Close()
			n, err := Sweep(temp)
			if n != 1 && err == nil {
				err = fmt.Errorf("swept %d directories", n)
			}
			return err
		},
	} {
		for _, of := range []string{"h/go/pkg/mod/m", "."} {
			temp := filepath.Join(agenttest.ShortTemp(t), "t")
			if err := os.Mkdir(temp, 0o700); err != nil {
				t.Fatal(err)
			}
			err := nobody.Call(t, temp, func() error {
				d, err := Make(temp)
				if err != nil {
					return err
				}
				closed := filepath.Join(d.Root, of)
				err = errors.Join(os.MkdirAll(closed, 0o700), os.WriteFile(closed+"/file", nil, 0o600))
				if err = errors.Join(err, os.Chmod(closed, 0)); err != nil {
					return err
				}
				if err := os.RemoveAll(closed); !errors.Is(err, fs.ErrPermission) {
					return errors.New("the directory has permissions: the test would prove nothing")
				}
				return remove(d, temp)
			})
			if left, _ := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("%s, %s: left %v, %v", name, of, left, err)
			}
		}
	}
}
