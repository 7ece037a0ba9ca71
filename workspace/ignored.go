package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Bounds of the files of an environment, because each new clone gets a copy of them. Later files by name are left out.
const (
	maxEnvironmentFiles = 500
	maxEnvironmentBytes = 64 << 20
)

// environmentFiles is the directory of an environment with its files, named by their position.
const environmentFiles = "files"

// takeFiles moves files of the clone of a set-up to the directory of the environment.
func (e *Environment) takeFiles(from string, names []string) error {
	dir, size := filepath.Join(e.dir, environmentFiles), int64(0)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || size+info.Size() > maxEnvironmentBytes || len(e.Files) == maxEnvironmentFiles {
			continue
		}
		if err := os.Rename(filepath.Join(from, name), filepath.Join(dir, strconv.Itoa(len(e.Files)))); err != nil {
			return err
		}
		size, e.Files = size+info.Size(), append(e.Files, name)
	}
	e.Size += size
	return nil
}

// giveFiles copies the files of an environment to a clone. A file is left out that the repository has there, or that
// git does not ignore there: it would be published.
func (c clone) giveFiles(ctx context.Context, e Environment, root *os.Root, tracked string) error {
	given := map[string]bool{}
	for i, name := range e.Files {
		made, _ := makeDir(root, filepath.Dir(name))
		ours := strings.Contains(tracked, "\x00"+name+"\x00")
		if info, err := root.Lstat(name); !made || ours || err == nil && info.IsDir() {
			continue
		}
		if err := copyInto(root, name, filepath.Join(e.dir, environmentFiles, strconv.Itoa(i))); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		given[name] = true
	}
	if len(given) == 0 {
		return nil
	}
	out, err := c.git.run(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return fmt.Errorf("list untracked files: %w", err)
	}
	for name := range strings.SplitSeq(out, "\x00") {
		if given[name] {
			if err := root.Remove(name); err != nil {
				return fmt.Errorf("remove %s: %w", name, err)
			}
		}
	}
	return nil
}

// copyInto copies a file, and replaces what is in its place.
func copyInto(root *os.Root, name, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
