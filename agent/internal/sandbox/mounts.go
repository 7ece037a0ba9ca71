package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/keeper"
)

// box is where one run happens: in the file system of the machine, or in a sandbox with a view of its own. There the keeper is inside,
// as the first process of a process namespace: what it starts and stops it sees as ever, its end is everybody's end by the kernel's
// word, and no tool can signal it. bubblewrap itself stays outside and only waits for it.
type box struct {
	bwrap []string // bubblewrap's command line up to the program; empty without a sandbox
	alone bool     // it has no network but its own loopback, where the gateway is

	// As seen from inside.
	cli  string
	seen string // the run's own directory
}

// boxedTemp is the run's own directory as seen from inside: nothing of the machine's is there, and a program that does not ask where
// temporary files go finds room.
const boxedTemp = "/tmp"

// box prepares the place of a run.
func (r *Runner) box(ctx context.Context, s Spec, cli string, d runDirs) (box, *Error) {
	bwrap, why := r.bubblewrap(ctx)
	if why != nil {
		return box{}, why.refusal()
	}
	if bwrap == "" {
		return box{cli: cli, seen: d.Root}, nil
	}
	// npm's link to it may be in a place that is hidden.
	cli, err := filepath.EvalSymlinks(cli)
	if err != nil {
		return box{}, NewError(ClassCLIMissing, err.Error())
	}
	args, err := r.bwrapArgs(bwrap, s, cli, d)
	if err != nil {
		return box{}, NewError(ClassWorkspace, err.Error())
	}
	alone := s.Profile == Untrusted && r.model.Gated() && r.alone(ctx, bwrap) // without a gateway the CLI has to get to the model by itself
	if alone {
		args = slices.Insert(args, 1, "--unshare-net")
	}
	return box{bwrap: args, alone: alone, cli: cli, seen: boxedTemp}, nil
}

// place is where the keeper starts.
func (b box) place() keeper.Sandbox { return keeper.Sandbox{Args: b.bwrap, Seccomp: seccompFile} }

// gatewayPort is where the gateway listens inside; 0 for none.
func (b box) gatewayPort() int {
	if b.alone {
		return gatewayPort
	}
	return 0
}

// bwrapArgs is bubblewrap's command line for a run, up to the program. A run has its own processes and shared memory, and no capabilities.
func (r *Runner) bwrapArgs(bwrap string, s Spec, cli string, d runDirs) ([]string, error) {
	mounts, err := r.mounts(s, cli, d)
	if err != nil {
		return nil, err
	}
	args := []string{bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--as-pid-1", "--cap-drop", "ALL"}
	if r.sandbox.flat {
		args = append(args, "--disable-userns")
	}
	for _, m := range mounts {
		args = append(args, m.how)
		if m.from != "" {
			args = append(args, m.from)
		}
		args = append(args, m.at)
	}
	for _, m := range mounts { // once what is mounted in it has its place
		if m.how == "--tmpfs" {
			args = append(args, "--remount-ro", m.at)
		}
	}
	return append(args, "--"), nil
}

// mount is one place of the file system that a run sees.
type mount struct {
	at    string // absolute, without symbolic links
	how   string // bubblewrap's option
	from  string // its source; empty for an option without one
	blank bool   // nothing of the machine shows through
}

// mounts are the file system that a run sees, outer places before those in them.
func (r *Runner) mounts(s Spec, cli string, d runDirs) ([]mount, error) {
	all := []mount{
		{at: "/", how: "--ro-bind", from: "/"},
		{at: "/dev", how: "--dev"},
		{at: "/proc", how: "--proc"},
		// The settings of the machine's own kernel. bubblewrap leaves them as they are, and they are files of root's.
		{at: "/proc/sys", how: "--ro-bind", from: "/proc/sys"},
		{at: "/proc/sysrq-trigger", how: "--ro-bind-try", from: "/proc/sysrq-trigger"},
	}
	for _, path := range slices.Concat(r.cfg.Hidden, []string{r.cfg.LogDir, filepath.Dir(d.Root)}) {
		if real, info, err := lookUp(path); err != nil {
			continue // not there, or not for this user to see
		} else if info.IsDir() {
			all = append(all, mount{at: real, how: "--tmpfs", blank: true})
		} else {
			all = append(all, mount{at: real, how: "--ro-bind", from: "/dev/null", blank: true})
		}
	}
	for _, m := range slices.Concat(
		[]mount{{at: boxedTemp, how: "--bind", from: d.Root, blank: true}},
		each("--ro-bind", append(slices.Concat(r.cfg.Shown, s.Reads), cli)),
		each("--bind", append(s.further(), s.Dir)),
	) {
		var err error
		if m.at, _, err = lookUp(m.at); err == nil {
			m.from, _, err = lookUp(m.from)
		}
		if err != nil {
			return nil, fmt.Errorf("set up the sandbox: %w", err)
		}
		all = append(all, m)
	}
	return inOrder(all), nil
}

// each shows places of the machine where they are.
func each(how string, paths []string) []mount {
	var all []mount
	for _, path := range paths {
		if path != "" {
			all = append(all, mount{at: path, how: how, from: path})
		}
	}
	return all
}

// lookUp finds what a path leads to: bubblewrap does not follow links to the place where it mounts something.
func lookUp(path string) (string, os.FileInfo, error) {
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

// inOrder sorts mounts so that each comes after those it is in. Of several at one place the last one counts, and what would change
// nothing is left out: it would need a mount point.
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
