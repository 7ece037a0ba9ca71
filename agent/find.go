package agent

import (
	"fmt"
	"os"
	"path/filepath"
)

// MinCLI is the oldest version that this package was verified against. Older versions cannot be kept from reading files that a text names
// (2.1.268: see callable); still older ones take an allowance without input for a denial and do not report that a session is idle.
const MinCLI = "2.1.329"

// Find returns the absolute path of the CLI: the one that is named explicitly, by a path or by a name on path, otherwise the one that npm
// installed into dir or a parent of it, otherwise the first on path (a list as in $PATH). The project's comes before the machine's because
// its version is pinned.
func Find(explicit, dir, path string) (string, error) {
	if explicit != "" && filepath.Base(explicit) == explicit {
		if c := onPath(explicit, path); c != "" {
			return c, nil
		}
		return "", NewError(ClassCLIMissing, explicit+" is not on PATH")
	}
	if explicit != "" {
		if err := executable(explicit); err != nil {
			return "", NewError(ClassCLIMissing, err.Error())
		}
		return filepath.Abs(explicit)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", NewError(ClassCLIMissing, err.Error())
	}
	for d := dir; ; d = filepath.Dir(d) {
		if c := filepath.Join(d, "node_modules", ".bin", "claude"); executable(c) == nil {
			return c, nil
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	if c := onPath("claude", path); c != "" {
		return c, nil
	}
	return "", NewError(ClassCLIMissing, "claude is neither in node_modules/.bin nor on PATH")
}

// onPath returns the first executable with that name on path; empty if not found. Relative entries are ignored.
func onPath(name, path string) string {
	for _, d := range filepath.SplitList(path) {
		if c := filepath.Join(d, name); filepath.IsAbs(c) && executable(c) == nil {
			return c
		}
	}
	return ""
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}
