// Package sandbox starts the keepers of runs in bubblewrap, where a run has its own view of the file system, its own
// processes and no capabilities, and on request its own network.
//
// In a sandbox the keeper is the first process of a process namespace. It sees what it starts as it does outside, the
// kernel kills everything when the keeper ends, and no tool can signal it. bubblewrap itself stays outside and waits. A
// [Bwrap] may be used from any number of goroutines.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/session"
)

// Where the gateway and the egress proxy listen in a run's own network. Servers that a repository's tests start use
// other ports, and the kernel chooses none of these for them.
const (
	GatewayPort = 31080
	EgressPort  = 31081
)

// insideRoot is the run's own directory as seen from inside. Nothing of the machine's /tmp is visible, and programs
// that do not look at TMPDIR find room.
const insideRoot = "/tmp"

// insideHome is the run's home as seen from inside.
var insideHome = session.Dirs{InsideRoot: insideRoot}.Inside().Home

// sharedMemory is the size of /dev/shm, in bytes: browsers and databases need some.
const sharedMemory = 512 << 20

// ErrProgram says that the program of a run does not exist.
var ErrProgram = errors.New("program not found")

// Config configures a Bwrap.
type Config struct {
	Enabled bool          // otherwise runs have no sandbox
	Find    func() string // returns the path of bubblewrap; empty: not installed
	TempDir string        // parent of the runs' own directories; empty: the system's
	Hidden  []string      // files and directories that no run may see
	Shown   []string      // files and directories below hidden ones that runs may read; they must exist
	Log     *slog.Logger

	CheckOverlays func(ctx context.Context, dir string) error // says why a directory cannot have overlays, or nil
}

// Bwrap prepares the sandboxes of runs.
type Bwrap struct {
	cfg Config

	program  keeper.Probe[bubblewrap]
	network  keeper.Probe[struct{}] // whether it gives a run its own network
	overlays keeper.Probe[struct{}]

	shares sync.Once // the log says that runs share the machine's network
	copies sync.Once // and that environments are copied
}

// bubblewrap is a program that was seen to work.
type bubblewrap struct {
	path     string
	noUserns bool // it has --disable-userns (since 0.8); seccomp prevents user namespaces, too
}

// New returns a Bwrap. It does not look at bubblewrap yet.
func New(cfg Config) *Bwrap { return &Bwrap{cfg: cfg} }

// Unavailable says why a run cannot have the sandbox that is configured.
type Unavailable = keeper.Unavailable

// instead is the alternative for operators who cannot use a sandbox.
const instead = ", or run one task per container (worker -once), or set ERRAND_SANDBOX=none"

// Run describes a run that is to be started.
type Run struct {
	Program     string
	Root        string   // the run's own directory
	Write, Read []string // directories that it may write, and may only read; empty strings are skipped
	OwnNetwork  bool     // it should have no network but loopback
	Layers      []Layer
	Dir, SeenAs string // it also sees Dir at SeenAs, which need not exist; empty: it does not
}

// Place is where a run is started.
type Place struct {
	Keeper     keeper.Sandbox
	Program    string // as seen from inside
	Root       string // the run's own directory as seen from inside
	Home       string // the run's home as seen from inside; empty: in Root
	OwnNetwork bool
}

// Prepare returns the place of a run. The error is an *Unavailable if there is no working sandbox.
func (b *Bwrap) Prepare(ctx context.Context, run Run) (Place, error) {
	bwrap, unavailable := b.find(ctx)
	if unavailable != nil {
		return Place{}, unavailable
	}
	if bwrap.path == "" {
		home, err := copyLayers(ctx, run)
		return Place{Program: run.Program, Root: run.Root, Home: home}, err
	}
	program, err := filepath.EvalSymlinks(run.Program) // npm's link may be in a place that is hidden
	if err != nil {
		return Place{}, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	run.Program = program
	layers, overlays, err := b.layers(ctx, run)
	if err != nil {
		return Place{}, err
	}
	args, err := b.arguments(bwrap, run, layers...)
	if err != nil {
		return Place{}, err
	}
	p := Place{
		Keeper: keeper.Sandbox{Args: args, Seccomp: openFilter, Overlays: overlays}, Program: program, Root: insideRoot,
	}
	if !run.OwnNetwork {
		return p, nil
	}
	own, unavailable := b.hasOwnNetwork(ctx, bwrap)
	if unavailable != nil {
		return Place{}, unavailable
	}
	if own {
		p.OwnNetwork = true
		p.Keeper.Args = slices.Insert(args, 1, "--unshare-net")
	}
	return p, nil
}

// Path returns the path of a bubblewrap that works; empty if runs have no sandbox.
func (b *Bwrap) Path(ctx context.Context) (string, *Unavailable) {
	bwrap, unavailable := b.find(ctx)
	return bwrap.path, unavailable
}

// find returns a bubblewrap that works; the zero value if runs have no sandbox.
func (b *Bwrap) find(ctx context.Context) (bubblewrap, *Unavailable) {
	if !b.cfg.Enabled {
		return bubblewrap{}, nil
	}
	return b.program.Find(ctx, b.probe)
}

// probe finds bubblewrap and starts something harmless as a run would be started. Finding it is not enough: a container
// or a kernel's policy may forbid the namespaces that it needs.
func (b *Bwrap) probe(ctx context.Context) (bubblewrap, *Unavailable) {
	path := b.cfg.Find()
	if path == "" {
		return bubblewrap{}, &Unavailable{Problem: "bwrap is not on PATH", Remedy: "install bubblewrap" + instead}
	}
	path, err := filepath.EvalSymlinks(path) // the link may be hidden inside
	if err != nil {
		return bubblewrap{}, &Unavailable{Problem: "find bubblewrap: " + err.Error(), Remedy: "install it" + instead}
	}
	newest := bubblewrap{path, true}
	if b.try(ctx, newest) == nil {
		return newest, nil
	}
	older := bubblewrap{path, false}
	if unavailable := b.try(ctx, older); unavailable != nil {
		return bubblewrap{}, unavailable
	}
	return older, nil
}

// OwnNetwork reports whether runs can have their own network.
func (b *Bwrap) OwnNetwork(ctx context.Context) bool {
	bwrap, _ := b.find(ctx)
	if bwrap.path == "" {
		return false
	}
	own, _ := b.hasOwnNetwork(ctx, bwrap)
	return own
}

// hasOwnNetwork reports whether runs can have their own network. A policy may forbid it where bubblewrap works
// otherwise. The machine's load must not give a run the machine's network, so it is an *Unavailable that this cannot be
// found out.
func (b *Bwrap) hasOwnNetwork(ctx context.Context, bwrap bubblewrap) (bool, *Unavailable) {
	_, unavailable := b.network.Find(ctx, func(ctx context.Context) (struct{}, *Unavailable) {
		return struct{}{}, b.try(ctx, bwrap, "--unshare-net")
	})
	if unavailable == nil {
		return true, nil
	}
	if unavailable.Busy {
		return false, unavailable
	}
	b.shares.Do(func() {
		b.cfg.Log.Warn("runs share the machine's network: the egress list is not in force", "why", unavailable.Problem)
	})
	return false, nil
}

// try starts something harmless in a sandbox, with further options of bubblewrap.
func (b *Bwrap) try(ctx context.Context, bwrap bubblewrap, options ...string) *Unavailable {
	path := bwrap.path
	dirs, err := session.Make(b.cfg.TempDir)
	if err != nil {
		return &Unavailable{Problem: err.Error(), Remedy: session.Remedy(err)}
	}
	defer func() { _ = dirs.Remove() }()
	args, err := b.arguments(bwrap, Run{Program: path, Root: dirs.Root, Write: []string{dirs.Home}})
	if err != nil {
		return &Unavailable{Problem: err.Error(), Remedy: "repair the directories it names" + instead}
	}
	filter, err := openFilter()
	if err != nil {
		return &Unavailable{Problem: err.Error(), Remedy: "use another machine" + instead}
	}
	defer filter.Close()
	options = append(options, "--die-with-parent", "--seccomp", "3") // 3 is the first of ExtraFiles
	cmd := exec.CommandContext(ctx, path, append(slices.Concat(options, args[1:]), path, "--version")...)
	cmd.Env = []string{} // the worker's has secrets, and tools of other runs can read the process of bubblewrap
	cmd.ExtraFiles = []*os.File{filter}
	_, err = keeper.Output(cmd)
	if ctx.Err() != nil {
		return &Unavailable{
			Problem: path + " did not start in time", Remedy: "check the load of this machine", Busy: true,
		}
	}
	if err != nil {
		printed := "" // all of it: the reason may be its end
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			printed = string(exit.Stderr)
		}
		return &Unavailable{
			Problem: fmt.Sprintf("%s does not work here (%v)", path, err),
			Remedy:  remedies(os.DirFS("/proc"), printed) + instead,
		}
	}
	return nil
}

// arguments returns bubblewrap's command line for a run with layers, up to the program.
func (b *Bwrap) arguments(bwrap bubblewrap, run Run, layers ...mount) ([]string, error) {
	mounts, err := b.mounts(run)
	if err != nil {
		return nil, err
	}
	mounts = append(mounts, layers...)
	args := []string{bwrap.path, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--as-pid-1", "--cap-drop", "ALL"}
	if bwrap.noUserns {
		args = append(args, "--disable-userns")
	}
	for _, m := range mounts {
		args = append(args, m.how)
		if m.from != "" {
			args = append(args, m.from)
		}
		args = append(args, m.at)
	}
	// A file in memory counts for no process, so it must not grow without bound.
	args = append(args, "--size", strconv.Itoa(sharedMemory), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
	for _, m := range mounts { // after everything is mounted inside
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
		if real, info, err := resolve(path); err != nil || info.Mode()&os.ModeDevice != 0 {
			continue // it does not exist, this user cannot see it, or it is /dev/null, which nobody could open then
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

// inOrder sorts mounts so that each comes after those that contain it. Of several at one place the last one counts. A
// mount that would change nothing is left out, because it would need a mount point.
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
