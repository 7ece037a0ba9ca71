package tools

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// subjects returns the texts of a call that rules match, and whether they are paths; nil if the call has none.
func (p Policy) subjects(r Request) (list []string, paths bool) {
	t := catalog[r.Tool]
	if !t.files {
		if s := t.subject(r.Input); s != "" {
			list = []string{s}
		}
		return list, false
	}
	found, err := pathsOf(r)
	if err != nil || len(found) == 0 {
		found = []string{"."} // a search in the working directory
	}
	for _, path := range found {
		path = p.absolute(path)
		real := resolve(path)
		list = append(list, relative(path, p.Dir), relative(real, resolve(p.Dir)))
		for _, dir := range p.Clones {
			list = append(list, slices.DeleteFunc([]string{relative(path, dir), relative(real, resolve(dir))},
				filepath.IsAbs)...)
		}
	}
	return slices.Compact(list), true
}

// roots lists the directories whose files may be accessed.
func (p Policy) roots() []string { return append([]string{p.Dir}, p.Roots...) }

// within reports whether a path is inside one of the directories. It resolves symbolic links as far as the path exists.
func (p Policy) within(path string, dirs []string) bool {
	path = resolve(p.absolute(path))
	return slices.ContainsFunc(dirs, func(root string) bool {
		rel, err := filepath.Rel(resolve(root), path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// absolute makes a path absolute, relative to where the agent starts.
func (p Policy) absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmp.Or(p.Start, p.Dir), path)
	}
	return filepath.Clean(path)
}

// relative makes a path relative to dir if it is below it.
func relative(path, dir string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return filepath.ToSlash(path)
}

// resolve follows the links of the longest existing prefix of a path.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir, base := filepath.Split(path)
	if dir = filepath.Clean(dir); dir == path {
		return path
	}
	return filepath.Join(resolve(dir), base)
}

// pathsOf returns the files and directories that a call of a file tool names. Argument names are read as the CLI reads
// them: case counts, and the last of several wins.
func pathsOf(r Request) ([]string, error) {
	var in struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string `json:"path"`
		Pattern  string `json:"pattern"`
		Glob     string `json:"glob"`
	}
	if err := json.Unmarshal(r.Input, &in, lenient); err != nil {
		return nil, err
	}
	paths := []string{r.Blocked, in.File, in.Notebook, in.Path}
	// Patterns of file names are paths too: /home/*/** needs no directory argument.
	if r.Tool == "Glob" {
		paths = append(paths, fixed(in.Path, in.Pattern))
	}
	paths = append(paths, fixed(in.Path, in.Glob))
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" }), nil
}

// fixed returns the part of a pattern before its first wildcard, as a path below dir; the root if the pattern contains
// "..".
func fixed(dir, pattern string) string {
	if pattern == "" {
		return ""
	}
	if strings.Contains(pattern, "..") {
		return "/"
	}
	if i := strings.IndexAny(pattern, "*?[{\\"); i >= 0 {
		pattern = pattern[:i]
	}
	if filepath.IsAbs(pattern) {
		return pattern
	}
	return filepath.Join(dir, pattern)
}
