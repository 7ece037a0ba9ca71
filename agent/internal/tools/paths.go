package tools

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// about is what a call is about, as rules see it, and whether that is paths. A call about nothing in particular has none.
func (p Policy) about(r ToolRequest) (list []string, paths bool) {
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
		list = append(list, relative(path, p.Dir), relative(resolve(path), resolve(p.Dir)))
	}
	return slices.Compact(list), true
}

// roots are the directories whose files may be touched.
func (p Policy) roots() []string { return append([]string{p.Dir}, p.Roots...) }

// inside resolves symbolic links as far as the path exists, so that a link does not lead out.
func (p Policy) inside(path string) bool {
	path = resolve(p.absolute(path))
	return slices.ContainsFunc(p.roots(), func(root string) bool {
		rel, err := filepath.Rel(resolve(root), path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// absolute is a path as the agent means it: from where it works.
func (p Policy) absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	return filepath.Clean(path)
}

// relative is a path as people write it: from dir, if it is below it.
func relative(path, dir string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return filepath.ToSlash(path)
}

// resolve follows the links of the longest existing beginning of path.
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

// pathsOf are the files and directories a call of a file tool names. Names of arguments are read as the CLI reads them: to the letter,
// and the last of several counts.
func pathsOf(r ToolRequest) ([]string, error) {
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
	// Patterns of file names are paths, too: /home/*/** needs no directory to be named beside it.
	if r.Tool == "Glob" {
		paths = append(paths, fixed(in.Path, in.Pattern))
	}
	paths = append(paths, fixed(in.Path, in.Glob))
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" }), nil
}

// fixed is the part of a pattern before its first wildcard, as a path below dir; a pattern that climbs is taken at its word.
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
