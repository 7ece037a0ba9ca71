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

// The whole configuration of errand's git directories. Neither contains a remote: mirrors get the URL as an argument,
// clones have none.
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
	// Housekeeping is off for the agent's git too, because it would continue in the background after the run.
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

// secure makes a git directory safe for the host's git, regardless of what an agent did to it. It replaces the
// configuration, limits borrowed objects to alternates, removes links that lead elsewhere, and removes stale locks. It
// fails if there is no git directory.
//
// The configuration is replaced and not overridden, because many keys execute something and some cannot be overridden
// (core.alternateRefsCommand, include.path, remote.<url>.uploadpack). Attributes and hooks may stay: attributes only
// name filters and drivers, which the configuration would have to define, and core.hooksPath disables hooks in every
// call.
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
	// Git would read configuration and refs from the directory that it names.
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

// shared reports whether a file has several hard links. Git appends to logs in place, and would change the other file
// too.
func shared(d fs.DirEntry) bool {
	info, err := d.Info()
	if err != nil {
		return false // it is gone
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// sweep removes everything that belongs to no running git, as none runs here: lock files, partly written objects, and
// everything that is neither file nor directory. Git follows links when it writes, and hangs when it reads a pipe.
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

// put replaces a file atomically, so that a concurrent git sees the old or the new content. It never writes through a
// hard link.
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

// exists reports whether path exists, even as a dangling link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// replace moves the finished tmp to dst, and what was at dst to aside.
func replace(tmp, dst, aside string) error {
	if err := removeAll(aside); err != nil {
		return err
	}
	if err := os.Rename(dst, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(tmp, dst)
}

// removeAll is os.RemoveAll that also removes directories without write permission, such as Go's module cache. It
// follows no links.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if info, statErr := os.Lstat(dir); statErr != nil || !info.IsDir() {
		return err // it may be a link, which OpenRoot would follow
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
