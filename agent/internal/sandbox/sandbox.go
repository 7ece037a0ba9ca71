// Package sandbox starts the keepers of runs in bubblewrap, where a run has its own view of the file system, its own processes and no
// capabilities, and on request its own network.
//
// In a sandbox the keeper is the first process of a process namespace. It sees what it starts as it does outside, the kernel kills
// everything when the keeper ends, and no tool can signal it. bubblewrap itself stays outside and waits. A [Bwrap] may be used from any
// number of goroutines.
package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/agent/internal/session"
)

// GatewayPort is where the gateway listens in a run's own network. Nothing else listens there.
const GatewayPort = 8080

// insideRoot is the run's own directory as seen from inside. Nothing of the machine's /tmp is visible, and programs that do not look at
// TMPDIR find room.
const insideRoot = "/tmp"

// probeTimeout bounds an attempt to start something in a sandbox. It takes 10 ms.
const probeTimeout = 10 * time.Second

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
}

// Bwrap prepares the sandboxes of runs. Once bubblewrap was seen to work, that is not checked again; if it does not work, it is tried
// again for each run, so that a remedy works at once.
type Bwrap struct {
	cfg Config

	mu         sync.Mutex
	path       string // of bubblewrap, once it was seen to work
	noUserns   bool   // it has --disable-userns, as versions since 0.8 do; the seccomp filter also prevents user namespaces
	ownNetwork bool   // it was seen to give a run its own network
	warned     bool   // that untrusted runs share the machine's network
}

// New returns a Bwrap. It does not look at bubblewrap yet.
func New(cfg Config) *Bwrap { return &Bwrap{cfg: cfg} }

// Unavailable says why a run cannot have the sandbox that is configured.
type Unavailable struct{ Problem, Remedy string }

func (u *Unavailable) Error() string { return u.Problem + ": " + u.Remedy }

// instead is what operators who cannot have a sandbox may do.
const instead = ", or set ERRAND_SANDBOX=none"

// Run describes a run that is to be started.
type Run struct {
	Program     string
	Root        string   // the run's own directory
	Write, Read []string // directories that it may write, and may only read; empty strings are skipped
	OwnNetwork  bool     // it should have no network but loopback, where the gateway listens
}

// Place is where a run is started.
type Place struct {
	Keeper     keeper.Sandbox
	Program    string // as seen from inside
	Root       string // the run's own directory as seen from inside
	OwnNetwork bool
}

// Prepare returns the place of a run. The error is an *Unavailable if there is no working sandbox.
func (b *Bwrap) Prepare(ctx context.Context, run Run) (Place, error) {
	path, unavailable := b.Path(ctx)
	if unavailable != nil {
		return Place{}, unavailable
	}
	if path == "" {
		return Place{Program: run.Program, Root: run.Root}, nil
	}
	program, err := filepath.EvalSymlinks(run.Program) // npm's link may be in a place that is hidden
	if err != nil {
		return Place{}, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	run.Program = program
	args, err := b.arguments(path, run)
	if err != nil {
		return Place{}, err
	}
	p := Place{Keeper: keeper.Sandbox{Args: args, Seccomp: openFilter}, Program: program, Root: insideRoot}
	if run.OwnNetwork && b.hasOwnNetwork(ctx, path) {
		p.OwnNetwork = true
		p.Keeper.Args = slices.Insert(args, 1, "--unshare-net")
	}
	return p, nil
}

// GatewayPort returns where the gateway listens inside; 0 if it listens outside.
func (p Place) GatewayPort() int {
	if p.OwnNetwork {
		return GatewayPort
	}
	return 0
}

// Path returns the path of a bubblewrap that works; empty if runs have no sandbox.
func (b *Bwrap) Path(ctx context.Context) (string, *Unavailable) {
	if !b.cfg.Enabled {
		return "", nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path == "" {
		path, unavailable := b.probe(ctx)
		if unavailable != nil {
			return "", unavailable
		}
		b.path = path
	}
	return b.path, nil
}

// probe finds bubblewrap and starts something harmless as a run would be started. Finding it is not enough: a container or a kernel's
// policy may forbid the namespaces that it needs.
func (b *Bwrap) probe(ctx context.Context) (string, *Unavailable) {
	path := b.cfg.Find()
	if path == "" {
		return "", &Unavailable{"bwrap is not on PATH", "install bubblewrap" + instead}
	}
	path, err := filepath.EvalSymlinks(path) // the link may be hidden inside
	if err != nil {
		return "", &Unavailable{"find bubblewrap: " + err.Error(), "install it" + instead}
	}
	if b.try(ctx, path, "--disable-userns") == nil {
		b.noUserns = true
		return path, nil
	}
	if unavailable := b.try(ctx, path); unavailable != nil {
		return "", unavailable
	}
	return path, nil
}

// hasOwnNetwork reports whether runs can have their own network. A policy may forbid it where bubblewrap works otherwise.
func (b *Bwrap) hasOwnNetwork(ctx context.Context, path string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ownNetwork {
		return true
	}
	unavailable := b.try(ctx, path, "--unshare-net")
	b.ownNetwork = unavailable == nil
	if !b.ownNetwork && !b.warned {
		b.warned = true
		b.cfg.Log.Warn("untrusted runs share the network", "why", unavailable.Problem)
	}
	return b.ownNetwork
}

// try starts something harmless in a sandbox, with further options of bubblewrap.
func (b *Bwrap) try(ctx context.Context, path string, options ...string) *Unavailable {
	dirs, err := session.Make(b.cfg.TempDir)
	if err != nil {
		return &Unavailable{err.Error(), "make the temporary directory writable"}
	}
	defer func() { _ = dirs.Remove() }()
	args, err := b.arguments(path, Run{Program: path, Root: dirs.Root, Write: []string{dirs.Home}})
	if err != nil {
		return &Unavailable{err.Error(), "repair the directories it names" + instead}
	}
	filter, err := openFilter()
	if err != nil {
		return &Unavailable{err.Error(), "use another machine" + instead}
	}
	defer filter.Close()
	options = append(options, "--seccomp", "3") // the first of ExtraFiles
	// A run that is stopped meanwhile must not make the sandbox look broken.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(slices.Concat(options, args[1:]), path, "--version")...)
	cmd.Env = []string{} // the worker's has secrets, and tools of other runs can read the process of bubblewrap
	cmd.WaitDelay, cmd.ExtraFiles = time.Second, []*os.File{filter}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		output := cmp.Or(strings.Join(strings.Fields(out.String()), " "), err.Error())
		return &Unavailable{
			fmt.Sprintf("%s does not work here (%s)", path, redact.Clip(output, 300)),
			"allow user namespaces (docs/security.md)" + instead,
		}
	}
	return nil
}

// arguments returns bubblewrap's command line for a run, up to the program.
func (b *Bwrap) arguments(path string, run Run) ([]string, error) {
	mounts, err := b.mounts(run)
	if err != nil {
		return nil, err
	}
	args := []string{path, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--as-pid-1", "--cap-drop", "ALL"}
	if b.noUserns {
		args = append(args, "--disable-userns")
	}
	for _, m := range mounts {
		args = append(args, m.how)
		if m.from != "" {
			args = append(args, m.from)
		}
		args = append(args, m.at)
	}
	for _, m := range mounts { // after everything is mounted inside
		if m.how == "--tmpfs" {
			args = append(args, "--remount-ro", m.at)
		}
	}
	return append(args, "--"), nil
}
