package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mount is one place of the file system that a run sees.
type mount struct {
	at    string // absolute, without symbolic links
	how   string // bubblewrap's option
	from  string // its source; empty for an option without one
	blank bool   // nothing of the machine shows through
}

// mounts lists the file system that a run sees, outer places before those inside them.
func (b *Bwrap) mounts(run Run) ([]mount, error) {
	all := []mount{
		{at: "/", how: "--ro-bind", from: "/"},
		{at: "/dev", how: "--dev"},
		{at: "/proc", how: "--proc"},
		// The settings of the machine's kernel. bubblewrap leaves them as they are, and root can write them.
		{at: "/proc/sys", how: "--ro-bind", from: "/proc/sys"},
		{at: "/proc/sysrq-trigger", how: "--ro-bind-try", from: "/proc/sysrq-trigger"},
	}
	for _, path := range append(slices.Clone(b.cfg.Hidden), filepath.Dir(run.Root)) {
		if real, info, err := resolve(path); err != nil {
			continue // it does not exist, or this user cannot see it
		} else if info.IsDir() {
			all = append(all, mount{at: real, how: "--tmpfs", blank: true})
		} else {
			all = append(all, mount{at: real, how: "--ro-bind", from: "/dev/null", blank: true})
		}
	}
	for _, m := range slices.Concat(
		[]mount{{at: insideRoot, how: "--bind", from: run.Root, blank: true}},
		inPlace("--ro-bind", slices.Concat(b.cfg.Shown, run.Read, []string{run.Program})),
		inPlace("--bind", run.Write),
	) {
		var err error
		if m.at, _, err = resolve(m.at); err == nil {
			m.from, _, err = resolve(m.from)
		}
		if err != nil {
			return nil, fmt.Errorf("set up the sandbox: %w", err)
		}
		all = append(all, m)
	}
	return inOrder(all), nil
}

// inPlace mounts paths of the machine at the same paths.
func inPlace(how string, paths []string) []mount {
	var all []mount
	for _, path := range paths {
		if path != "" {
			all = append(all, mount{at: path, how: how, from: path})
		}
	}
	return all
}

// resolve follows the links of a path: bubblewrap does not follow those to the place where it mounts something.
func resolve(path string) (string, os.FileInfo, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(path)
	return path, info, err
}

// inOrder sorts mounts so that each comes after those that contain it. Of several at one place the last one counts. A mount that would
// change nothing is left out, because it would need a mount point.
func inOrder(all []mount) []mount {
	slices.SortStableFunc(all, func(a, b mount) int { return strings.Compare(a.at, b.at) })
	var kept []mount
	for i, m := range all {
		if i+1 < len(all) && all[i+1].at == m.at {
			continue
		}
		var outer mount
		for _, o := range kept {
			if rel, err := filepath.Rel(o.at, m.at); err == nil && filepath.IsLocal(rel) {
				outer = o // the innermost is the last of them
			}
		}
		shown := m.how == "--ro-bind" && m.from == m.at && outer.how == m.how && outer.from == outer.at
		if !shown && (!m.blank || !outer.blank) {
			kept = append(kept, m)
		}
	}
	return kept
}
