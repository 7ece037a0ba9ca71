package agent

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// tools are the CLI's built-in tools per profile; it is started with these and no others. Left out on purpose: what starts work
// later (cron, wake-ups, monitors), what talks to other sessions, and what asks a person at the terminal.
var tools = map[Profile][]string{
	Write:     {"Agent", "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "TaskStop", "ToolSearch", "WebFetch", "WebSearch", "Write"},
	Read:      {"Glob", "Grep", "Read"},
	Untrusted: {"Glob", "Grep", "Read"},
}

// readers take a path and change nothing.
var readers = map[string]bool{"Read": true, "Glob": true, "Grep": true}

// Policy decides tool calls by profile: the second wall behind the list of tools the CLI gets.
type Policy struct {
	Profile Profile
	Roots   []string // directories the agent may touch, absolute
}

// Decide answers a request at once. Files are held to the policy's roots; a command of the Write profile is not looked into,
// since no list of words contains a shell: containment is the sandbox's and the image's work.
func (p Policy) Decide(r ToolRequest) Decision {
	switch {
	case r.Human:
		return Decision{Reason: "Nobody is there to answer. Decide yourself and say in your answer what you assumed."}
	case readers[r.Tool] || p.Profile == Write && len(pathsOf(r)) > 0:
		for _, path := range pathsOf(r) {
			if !p.inside(path) {
				return Decision{Reason: "Only files below the working directory may be touched: " + strings.Join(p.Roots, ", ")}
			}
		}
		return Decision{Allow: true}
	case p.Profile == Write:
		return Decision{Allow: true}
	default:
		return Decision{Reason: "This run may only read files."}
	}
}

// inside resolves symbolic links as far as the path exists, so that a link does not lead out.
func (p Policy) inside(path string) bool {
	if !filepath.IsAbs(path) && len(p.Roots) > 0 {
		path = filepath.Join(p.Roots[0], path)
	}
	path = resolve(filepath.Clean(path))
	for _, root := range p.Roots {
		rel, err := filepath.Rel(resolve(root), path)
		if root != "" && err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
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

// pathsOf are the files and directories a request is about.
func pathsOf(r ToolRequest) []string {
	if r.Tool == "Bash" {
		return nil
	}
	var in struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string `json:"path"`
		Pattern  string `json:"pattern"`
		Glob     string `json:"glob"`
	}
	_ = json.Unmarshal(r.Input, &in) // of another shape: no path
	paths := []string{r.Blocked, in.File, in.Notebook, in.Path}
	// Patterns of file names are paths, too: /home/*/** needs no directory to be named beside it.
	if r.Tool == "Glob" {
		paths = append(paths, fixed(in.Path, in.Pattern))
	}
	paths = append(paths, fixed(in.Path, in.Glob))
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" })
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
