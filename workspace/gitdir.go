package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// The whole configuration of our git directories. Neither names a remote: mirrors get the URL as an argument, clones have none.
const (
	mirrorConfig = `[core]
	repositoryformatversion = 0
	bare = true
	logAllRefUpdates = false
[gc]
	auto = 0
[maintenance]
	auto = false
`
	// Housekeeping is off for the agent's own git too: it would go on in the background after the run.
	cloneConfig = `[core]
	repositoryformatversion = 0
	bare = false
	logAllRefUpdates = true
[gc]
	auto = 0
[maintenance]
	auto = false
`
)

// secure makes a git directory one that the host's git may work in, whatever was done to it: its configuration is ours,
// it borrows from alternates only, nothing in it leads elsewhere, and no leftover lock is in the way. It fails if
// there is no git directory.
//
// Configuration is replaced and not overruled, as the keys that execute something are many and some cannot be overruled
// (core.alternateRefsCommand, include.path, remote.<url>.uploadpack). Attributes only name filters and drivers, which
// without configuration do not exist, and hooks are off by core.hooksPath in every call; both may stay.
func secure(dir, config, alternates string) error {
	for _, d := range []string{filepath.Dir(dir), dir} {
		fi, err := os.Lstat(d)
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return fmt.Errorf("%s is not a directory", d)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := sweep(root); err != nil {
		return err
	}
	// Git would read configuration and refs from where it says.
	if err := root.RemoveAll("commondir"); err != nil {
		return err
	}
	if err := put(root, "config", config); err != nil {
		return err
	}
	if alternates == "" {
		return root.RemoveAll("objects/info/alternates")
	}
	return put(root, "objects/info/alternates", alternates+"\n")
}

// shared reports whether a file has a second name somewhere. Git appends to logs in place, and would write there.
func shared(d fs.DirEntry) bool {
	info, err := d.Info()
	if err != nil {
		return false // it is gone
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// sweep removes what cannot belong to a living git, as none lives here: lock files, half written objects, and whatever is
// neither file nor directory. Git follows links when it writes, and waits for ever when it reads a pipe.
func sweep(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		half := strings.HasPrefix(name, "objects/") && strings.HasPrefix(d.Name(), "tmp_")
		file := d.Type().IsRegular() && path.Ext(name) != ".lock" && !shared(d)
		if (file || d.IsDir()) && !half {
			return nil
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// put replaces a file in one step, so that a git reading at the same time sees the old or the new content, and
// never writes through a hard link.
func put(root *os.Root, name, content string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	tmp := name + ".new"
	if err := root.RemoveAll(tmp); err != nil {
		return err
	}
	if err := root.WriteFile(tmp, []byte(content), 0o644); err != nil {
		return err
	}
	if fi, err := root.Lstat(name); err == nil && fi.IsDir() {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return root.Rename(tmp, name)
}

// exists reports whether something, also a dangling link, is at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// replace puts the finished tmp where dst is, and what was there to aside.
func replace(tmp, dst, aside string) error {
	if err := removeAll(aside); err != nil {
		return err
	}
	if err := os.Rename(dst, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(tmp, dst)
}

// removeAll is os.RemoveAll also for directories without write permission, such as Go's module cache. It follows no links.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if info, statErr := os.Lstat(dir); statErr != nil || !info.IsDir() {
		return err // what cannot be removed may be a link, and OpenRoot would follow it
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return root.Chmod(name, 0o700)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}
