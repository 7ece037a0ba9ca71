package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/agent/internal/tools"
	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/sandbox"
	"github.com/errand-fleet/errand/agent/internal/session"
)

// Config says how a Runner runs the CLI. LogDir is required.
type Config struct {
	CLI          string            // path of the executable; empty: searched by Find for each run, so that it can be installed later
	LogDir       string            // directory of <id>.log and <id>.ndjson
	TempDir      string            // parent of the runs' own directories; empty: the system's. It must be short.
	BaseURL      string            // of the model; empty: the CLI's default
	Credential   Credential        // for the model; the CLI does not get it, but asks the model through the gateway of its run
	Models       []string          // models that runs may ask, in addition to that of their Spec and the CLI's small one; empty: those that the CLI offers
	Direct       bool              // gives the CLI the credential itself, where only the CLI's own requests are accepted. Tools can then read it
	Env          map[string]string // further variables for the CLI, which the agent's tools can read
	Sandbox      Sandbox           // the sandbox of all runs; empty: SandboxNone
	Hidden       []string          // files and directories that runs in a sandbox cannot see, in addition to LogDir and TempDir
	Shown        []string          // files and directories inside hidden ones that runs in a sandbox can read; they must exist
	Secrets      []string          // files with secrets of this process; Health warns if runs without a sandbox can read them
	Grace        time.Duration     // time from the decision to stop a run to SIGKILL; 0: 15 s
	MaxProcesses int               // maximum processes and threads of a run, which is stopped if it has more; 0: any number
	Servers      []MCPServer       // in addition to the tools of a Spec
	Redactor     *Redactor         // removes secrets from logs and events; nil: nothing is redacted
	Log          *slog.Logger      // nil: nothing is logged

	Getenv func(string) string // the worker's environment; nil: os.Getenv
}

// Sandbox says how far the processes of a run are kept from the rest of the machine.
type Sandbox string

// The sandboxes. The zero value is SandboxNone.
const (
	SandboxNone  Sandbox = "none"  // not at all: they may do whatever the worker's user may
	SandboxBwrap Sandbox = "bwrap" // by bubblewrap; if it does not work, nothing runs
)

// defaultGrace is the default of Config.Grace.
const defaultGrace = 15 * time.Second

// Runner runs the CLI. It is safe for concurrent use.
type Runner struct {
	cfg    Config
	log    *slog.Logger
	getenv func(string) string
	active sync.Map // IDs of the runs and scripts under way

	sandbox *sandbox.Bwrap

	model *gateway.Upstream // how all runs reach the model

	// Limits for the CLI's first answer, its exit after the end of the session, its silence, its answer to a ping, and
	// for the keeper after Grace; and the interval at which the CLI is asked for its usage. Tests shorten them.
	startLimit, exitLimit, pingAfter, pingLimit, keeperLimit, usedEvery time.Duration

	lines *protocol.Budget // memory of all runs for long lines of the CLI's output

	silentLimit time.Duration // without a sign of life from the worker, after which a keeper ends its run; tests shorten it
}

// New checks the configuration, but not the CLI or the sandbox: see Health. It makes this process a child subreaper,
// which inherits the processes that a killed keeper leaves, and those that other children leave. Dead ones are reaped
// after each run.
func New(c Config) (*Runner, error) {
	if c.LogDir == "" {
		return nil, errors.New("create runner: LogDir is empty")
	}
	r := &Runner{
		cfg: c, log: c.Log, getenv: c.Getenv,
		startLimit: time.Minute, exitLimit: 20 * time.Second, pingAfter: pingAfter, pingLimit: pingLimit, keeperLimit: keeper.EndTimeout,
		usedEvery: usedEvery, silentLimit: keeper.WorkerTimeout,
	}
	r.lines = protocol.NewBudget(protocol.MaxLines)
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.getenv == nil {
		r.getenv = os.Getenv
	}
	if err := errors.Join(CheckServers(c.Servers, r.getenv)...); err != nil {
		return nil, fmt.Errorf("create runner: %w", err)
	}
	if r.cfg.Grace <= 0 {
		r.cfg.Grace = defaultGrace
	}
	var err error
	r.model, err = gateway.NewUpstream(gateway.Config{
		BaseURL: c.BaseURL, Credential: c.Credential, Models: c.Models, Direct: c.Direct, Getenv: r.getenv, Log: r.log,
	})
	if err != nil {
		return nil, fmt.Errorf("create runner: BaseURL: %w", err)
	}
	switch r.cfg.Sandbox = cmp.Or(c.Sandbox, SandboxNone); r.cfg.Sandbox {
	case SandboxNone, SandboxBwrap:
	default:
		return nil, fmt.Errorf("create runner: sandbox %q is unknown", c.Sandbox)
	}
	r.sandbox = sandbox.New(sandbox.Config{
		Enabled: r.cfg.Sandbox == SandboxBwrap, Find: func() string { return onPath("bwrap", r.getenv("PATH")) }, TempDir: c.TempDir,
		Hidden: append(slices.Clone(c.Hidden), c.LogDir), Shown: c.Shown, Log: r.log,
	})
	if err := keeper.BecomeSubreaper(); err != nil {
		r.log.Warn("processes that outlive their keeper can outlive their run", "err", err)
	}
	if runtime.GOOS != "linux" {
		r.log.Warn("a process that daemonises itself can outlive its run on this system; use Linux in production")
	}
	return r, nil
}

var (
	runID = regexp.MustCompile(`^[a-z0-9.-]{1,80}$`)
	// argument matches what a caller may put into the CLI's argument list, which every user can read: only names.
	argument = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}$`)
)

// cli returns the path of the executable to run.
func (r *Runner) cli() (string, *Error) {
	path, err := Find(r.cfg.CLI, ".", r.getenv("PATH"))
	if e, ok := errors.AsType[*Error](err); ok {
		return "", e
	}
	return path, nil
}

// inputError returns an error for a mistake in the request, with a message for its author.
func inputError(why error) *Error {
	e := NewError(ClassInput, why.Error())
	e.User = why.Error() + "."
	return e
}

// check validates a Spec before anything is started.
func (r *Runner) check(s Spec) *Error {
	if !runID.MatchString(s.ID) || s.ID[0] == '.' || s.ID[0] == '-' {
		return NewError(ClassInternal, fmt.Sprintf("run ID %q is not of the form [a-z0-9.-]{1,80}", s.ID))
	}
	if tools.BuiltIn(s.Profile) == nil {
		return NewError(ClassInternal, fmt.Sprintf("profile %q is unknown", s.Profile))
	}
	for _, word := range []string{s.Model, s.Effort} {
		if word != "" && !argument.MatchString(word) {
			return NewError(ClassConfig, fmt.Sprintf("%q is not the name of a model or a level of effort", word))
		}
	}
	for i, rule := range s.Rules {
		if err := rule.Validate(); err != nil {
			return NewError(ClassConfig, fmt.Sprintf("rule %d: %v", i+1, err))
		}
	}
	if err := s.Prompt.check(); err != nil {
		return inputError(err)
	}
	if err := tools.Check(s.Tools); err != nil {
		return NewError(ClassInternal, err.Error())
	}
	info, err := os.Stat(s.Dir)
	switch {
	case !filepath.IsAbs(s.Dir):
		return NewError(ClassWorkspace, fmt.Sprintf("working directory %q is not absolute", s.Dir))
	case err != nil:
		return NewError(ClassWorkspace, "working directory: "+err.Error())
	case !info.IsDir():
		return NewError(ClassWorkspace, "working directory "+s.Dir+" is not a directory")
	case unix.Access(s.Dir, unix.R_OK|unix.X_OK) != nil:
		return NewError(ClassWorkspace, "working directory "+s.Dir+" may not be read by this user")
	}
	return nil
}

// KeeperMain must be the first call of main and of TestMain. In a process that was started as the keeper of a run it
// runs the keeper and exits; in any other process it returns at once.
func KeeperMain() { keeper.Main() }

// MakePrivate makes this process unreadable to other processes of its user, such as the shells of an agent's tools.
// Call it at the start of a process that holds secrets. It returns a notice for the operator if that does not help.
func MakePrivate() (notice string, err error) { return keeper.MakePrivate() }

// Sweep ends what dead workers of this machine have left behind, for the case that their keepers were killed as well.
// It kills every process that carries the mark of a dead worker, until none is left, and then removes the directories
// of their runs below Config.TempDir. Call it when a worker starts; it waits for at most 10 s. The error says what is
// left, which does not harm new runs.
//
// Processes of other users and of workers in other containers are not touched.
func (r *Runner) Sweep(ctx context.Context) error {
	processes, err := keeper.SweepDeadWorkers(ctx)
	directories, dirErr := session.Sweep(r.cfg.TempDir)
	if processes+directories > 0 {
		r.log.Warn("swept what dead workers had left", "processes", processes, "directories", directories)
	}
	return errors.Join(err, dirErr)
}

// Redactor removes secrets from text: the values it was given, in the forms in which they commonly appear, and anything
// that looks like a well-known kind of credential. It is immutable and safe for concurrent use. A nil *Redactor hides
// nothing.
type Redactor = redact.Redactor

// NewRedactor returns a Redactor for the given secrets and the well-known kinds of credentials. It ignores empty and
// very short values.
func NewRedactor(secrets ...string) *Redactor { return redact.New(secrets...) }
