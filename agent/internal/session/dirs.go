package session

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// runDirs are a run's own directories. While their worker lives it holds a lock in them (leftovers.go). Each run has its own: sessions that
// share a configuration see one another and can send each other messages (claude-cli.md §4), and a home that outlived its run would be a way
// from one run into the next.
type runDirs struct {
	Root, Config, Temp, Home string

	Seen string // Root as the run sees it; empty: as it is

	lock *os.File
}

// maxDirPath keeps room for the Unix sockets the CLI makes below its temp directory; a socket's path ends at 107 bytes.
const maxDirPath = 60

// dirPrefix begins the name of each run's directory.
const dirPrefix = "er-"

func dirsIn(root string) runDirs {
	return runDirs{Root: root, Config: filepath.Join(root, "c"), Temp: filepath.Join(root, "t"), Home: filepath.Join(root, "h")}
}

func makeDirs(parent string) (runDirs, error) {
	root, err := os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return runDirs{}, fmt.Errorf("create run directory: %w", err)
	}
	d := dirsIn(root)
	if len(d.Temp) > maxDirPath {
		_ = os.Remove(root)
		return runDirs{}, fmt.Errorf("create run directory: %s is longer than %d bytes: choose a shorter TMPDIR", d.Temp, maxDirPath)
	}
	for _, dir := range []string{d.Config, d.Temp, d.Home} {
		if err = os.Mkdir(dir, 0o700); err != nil {
			break
		}
	}
	if err == nil {
		d.lock, err = claimDir(root)
	}
	if err != nil {
		_ = os.RemoveAll(root)
		return runDirs{}, fmt.Errorf("create run directory: %w", err)
	}
	return d, nil
}

// seen are the directories as the run sees them.
func (d runDirs) seen() runDirs {
	if d.Seen == "" {
		return d
	}
	return dirsIn(d.Seen)
}

// put writes a file for the CLI, as JSON and for this user alone, and returns its path as the CLI sees it.
func (d runDirs) put(name string, v any) (string, error) {
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.Root, name), data, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return filepath.Join(d.seen().Root, name), nil
}

func (d runDirs) remove() error {
	err := os.RemoveAll(d.Root)
	_ = d.lock.Close()
	return err
}
