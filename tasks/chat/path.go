package chat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// blocked are the system's directories. They stay closed even if an operator opens a directory above them.
var blocked = []string{
	"/etc", "/usr", "/var", "/root", "/proc", "/sys", "/dev", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
}

// Directory returns the real path of a local directory that tasks may work in. The error says which rule the path breaks.
func (s *Source) Directory(path string) (string, error) {
	switch {
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("%q is not absolute", path)
	case slices.Contains(strings.Split(path, "/"), ".."):
		return "", fmt.Errorf("%q has .. in it", path)
	}
	// Check before any look-up, so that the answer does not reveal what exists there, and again for the real path.
	if err := s.open(filepath.Clean(path)); err != nil {
		return "", err
	}
	elsewhere := fmt.Errorf("%q is not in a directory that ERRAND_DIRS opens", path)
	dir, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil && !s.rooted(filepath.Clean(path)): // do not reveal whether it exists
		return "", elsewhere
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%q does not exist", path)
	case err != nil:
		return "", fmt.Errorf("%q cannot be reached", path)
	}
	if err := s.open(dir); err != nil {
		return "", err
	}
	if !slices.ContainsFunc(s.cfg.Dirs, func(root string) bool { return s.opens(resolved(root), dir) }) {
		return "", elsewhere
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%q is not a directory", path)
	}
	return dir, nil
}

// opens reports whether a root opens a directory. errand's state has the logs of all users, and git directories that the host works in: a root
// above it does not open it; only a root inside it does.
func (s *Source) opens(root, dir string) bool {
	state := resolved(s.cfg.StateDir)
	private := s.cfg.StateDir != "" && within(dir, state) && (root == state || !within(root, state))
	return within(dir, root) && !private
}

// rooted reports whether a path is lexically in an open directory, wherever its links lead.
func (s *Source) rooted(path string) bool {
	return slices.ContainsFunc(s.cfg.Dirs, func(root string) bool { return s.opens(absolute(root), path) || s.opens(resolved(root), path) })
}

// open returns an error for a directory of the system. Resolved paths count, too: /bin is a link into /usr or, on a Mac, /etc one into
// /private.
func (s *Source) open(dir string) error {
	if state := s.cfg.StateDir; state != "" && (within(dir, absolute(state)) || within(dir, resolved(state))) {
		return nil
	}
	for _, b := range blocked {
		if within(dir, b) || within(dir, resolved(b)) {
			return fmt.Errorf("%q is in %s, which belongs to the system", dir, b)
		}
	}
	return nil
}

// within reports whether path is dir itself or lies below it; both are clean. /variety is not within /var.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// absolute is a configured path without following links.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// resolved is the real path of a configured path; a path that does not exist is returned as it is.
func resolved(path string) string {
	if dir, err := filepath.EvalSymlinks(absolute(path)); err == nil {
		return dir
	}
	return absolute(path)
}
