package agent

import (
	"fmt"
	"os"
	"path/filepath"
)

// runDirs are a run's own directories. Each run has its own: sessions that share a configuration see one another and can send
// each other messages (claude-cli.md §4), and a home that outlived its run would be a way from one run into the next.
type runDirs struct{ Root, Config, Temp, Home string }

// maxDirPath keeps room for the Unix sockets the CLI makes below its temp directory; a socket's path ends at 107 bytes.
const maxDirPath = 60

func makeDirs(parent string) (runDirs, error) {
	root, err := os.MkdirTemp(parent, "er-")
	if err != nil {
		return runDirs{}, fmt.Errorf("create run directory: %w", err)
	}
	d := runDirs{Root: root, Config: filepath.Join(root, "c"), Temp: filepath.Join(root, "t"), Home: filepath.Join(root, "h")}
	if len(d.Temp) > maxDirPath {
		_ = os.Remove(root)
		return runDirs{}, fmt.Errorf("create run directory: %s is longer than %d bytes: choose a shorter TMPDIR", d.Temp, maxDirPath)
	}
	for _, dir := range []string{d.Config, d.Temp, d.Home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			_ = os.RemoveAll(root)
			return runDirs{}, fmt.Errorf("create run directory: %w", err)
		}
	}
	return d, nil
}

func (d runDirs) remove() error { return os.RemoveAll(d.Root) }
