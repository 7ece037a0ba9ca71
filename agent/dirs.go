package agent

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// runDirs are a run's own directories. Each run has its own: sessions that share a configuration see one another and can send
// each other messages (claude-cli.md §4), and a home that outlived its run would be a way from one run into the next.
type runDirs struct{ Root, Config, Temp, Home string }

// maxDirPath keeps room for the Unix sockets the CLI makes below its temp directory; a socket's path ends at 107 bytes.
const maxDirPath = 60

func dirsIn(root string) runDirs {
	return runDirs{Root: root, Config: filepath.Join(root, "c"), Temp: filepath.Join(root, "t"), Home: filepath.Join(root, "h")}
}

func makeDirs(parent string) (runDirs, error) {
	root, err := os.MkdirTemp(parent, "er-")
	if err != nil {
		return runDirs{}, fmt.Errorf("create run directory: %w", err)
	}
	d := dirsIn(root)
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

// putSession writes a saved session where the CLI will look for it when it runs in dir.
func (d runDirs) putSession(s Session, dir string) error {
	// The CLI names a project's directory after its path, all but letters and digits turned into dashes.
	slug := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, dir)
	project := filepath.Join(d.Config, "projects", slug)
	if err := os.MkdirAll(project, 0o700); err != nil {
		return fmt.Errorf("restore session: %w", err)
	}
	if err := os.WriteFile(filepath.Join(project, s.ID+".jsonl"), s.Data, 0o600); err != nil {
		return fmt.Errorf("restore session: %w", err)
	}
	return nil
}

// maxSession is the largest session that is taken along; one of hours has a few megabytes.
const maxSession = 64 << 20

// takeSession reads the session the CLI saved; nil when it saved none that can be used. The CLI is dead, but its tools could write here
// too, so no link leads out of the directory and no size out of bounds.
func (d runDirs) takeSession(id string) []byte {
	root, err := os.OpenRoot(d.Config)
	if err != nil {
		return nil
	}
	defer root.Close()
	found, err := fs.Glob(root.FS(), "projects/*/"+id+".jsonl")
	if err != nil || len(found) == 0 {
		return nil
	}
	info, err := root.Lstat(found[0])
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSession {
		return nil
	}
	data, err := root.ReadFile(found[0])
	if err != nil {
		return nil
	}
	return data
}

func (d runDirs) remove() error { return os.RemoveAll(d.Root) }
