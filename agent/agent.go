// Package agent runs the Claude Code CLI on a prompt, and guarantees that nothing of the run survives it.
//
// # Usage
//
// Every main function of a program that uses this package, and every TestMain, begins with [KeeperMain]. The keeper of
// each run is the program errand-keeper (agent/cmd/errand-keeper) if it is installed beside the program, or else the
// program itself, executed again, which takes more memory and time. One [Runner] then serves the whole process:
//
//	func main() {
//		agent.KeeperMain()
//		runner, err := agent.New(agent.Config{LogDir: "logs", Credential: agent.Credential{APIKey: key}})
//		…
//		prompt := agent.Message{Text: "Fix the test."}
//		result, err := runner.Run(ctx, agent.Spec{ID: "1", Dir: clone, Profile: agent.Write, Prompt: prompt}, host)
//	}
//
// A [Spec] says what to run. A [Host] receives events, decides the tool calls that the policy leaves to people, and
// supplies further messages. A [Result] says how the run ended. A run is a conversation: it continues until its session
// is idle and the Host has nothing to add. The agent can be given a [Tool] of this process and an [MCPServer], an
// earlier conversation to resume, files, and the form of its answer. [Runner.Health] reports whether a run could start,
// and if not, what to do.
//
// # What the package promises
//
//   - When Run returns, no process of the run is alive, even if it daemonised itself, and all its output is in the log.
//   - If the calling process dies, even by SIGKILL, the keepers stop its runs within 8 s.
//   - Reading the CLI's output never waits for the [Host]'s decisions, for Redis or for a browser. Every line is logged
//     whole, however long. Memory is bounded for all runs of a Runner together.
//   - An error of Run means that nothing ran. How a run ended, well or badly, is in its [Result], and the first cause
//     wins: a limit, a stall, or a cause of the caller.
//   - A run is over when all its messages have been answered and no task runs in the background. A result of the CLI is
//     only the end of a turn. The answer of the run is the answers of all turns, joined.
//   - Every request of the CLI is answered, unknown ones with an error. Every request to the CLI fails at once if the
//     CLI exits.
//   - A CLI that hangs is detected: at the start, after a result, or because it does not answer a ping. The time in
//     which a person decides does not count as silence.
//   - No prompt, context, schema or credential appears in an argument list. The environment of the CLI is an
//     allow-list, and its credential for the model is valid only during the run, unless Config.Direct is set. Logs and
//     events are redacted.
//   - In a sandbox (Config.Sandbox) a run writes only to the directories of its Spec and its own directory. It sees
//     nothing of Config.Hidden and no other processes, and has no capabilities. It reaches the hosts of Spec.Egress by
//     its own proxy, and a run of the Untrusted profile none.
//   - Nothing in a directory is executed or obeyed that the caller does not trust, and nothing at all in the
//     directories above it.
//
// # What the package does not promise
//
//   - If a keeper is killed with SIGKILL, the CLI dies with it. Other processes of the run are then found by the run's
//     marker in their environment (ERRAND_RUN), or, if the calling process was killed too, by [Runner.Sweep] at the
//     next start. A process that has also removed the marker escapes. In a sandbox no process escapes.
//   - Without a sandbox, and if the CLI asks the model directly, a run shares the network of the machine. Spec.Egress
//     then has no effect.
//   - The Write profile does not contain the agent: it may do everything that the user may, except for what the sandbox
//     prevents.
//   - The package has no queue: it neither repeats runs nor limits their number. [Class] says whether repeating would
//     help.
//   - JSON that the CLI splits over several lines would be logged and not understood. The CLI never does this.
//
// # Concurrency
//
// A Runner may be used by any number of goroutines. The package calls Host.Event from one goroutine at a time, in the
// order of the output; Event must not block. It calls Host.Permit, a [Tool]'s Run and a [Rule]'s Run on a new goroutine
// per call, Host.Next and Host.Idle on one goroutine each, and Spec.Checkpoint on another one. It calls none of them
// after Run has returned. docs/concurrency.md lists the goroutines of a run.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/cloud"
	"github.com/errand-fleet/errand/agent/internal/egress"
	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/agent/internal/sandbox"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/agent/internal/tools"
	"github.com/errand-fleet/errand/internal/argument"
	"github.com/errand-fleet/errand/internal/dirtree"
)

// Config says how a Runner runs the CLI. LogDir is required.
type Config struct {
	CLI          string            // path of the executable; if empty, Find looks for it before each run
	LogDir       string            // directory of <id>.log and <id>.ndjson
	Keeper       string            // path of errand-keeper; default: beside this program, or this program itself
	TempDir      string            // parent of the runs' own directories; empty: the system's. It must be short.
	BaseURL      string            // of the model; empty: the CLI's default
	Credential   Credential        // for the model; only the gateways of runs have it, not the CLI
	Credentials  []ModelCredential // instead of Credential, the preferred ones first, and always with a gateway
	ModelHeaders http.Header       // further headers of requests to the model; only with a gateway, as ModelToken
	ModelToken   ModelToken        // instead of Credential: a token that changes; nil: none
	Cloud        cloud.Provider    // instead of BaseURL and Credential; nil: Anthropic's own API, or a gateway like it
	ModelNames   map[string]string // what the provider calls opus, sonnet and haiku; missing: as the CLI says
	Prices       PriceList         // of models, before the list prices
	Models       []string          // further models that runs may use; default: those that the CLI offers
	Direct       bool              // gives the CLI the credential itself; its tools can then read it
	Env          map[string]string // further variables for the CLI, which the agent's tools can read
	Sandbox      Sandbox           // the sandbox of all runs; empty: SandboxNone
	// Alone says that the process makes one run and ends, together with its container and all that the run has left.
	Alone        bool
	Hidden       []string      // further files and directories that a sandbox hides, beside LogDir and TempDir
	Shown        []string      // existing paths inside hidden ones that runs in a sandbox can read
	Secrets      []string      // secret files; Health warns if runs without a sandbox can read them
	Grace        time.Duration // time from the decision to stop a run to SIGKILL; 0: 15 s
	MaxProcesses int           // a run with more processes and threads is stopped; 0: no limit
	MaxMemory    int64         // maximum bytes of all processes of a run together, likewise; 0: any number
	MaxDisk      int64         // maximum bytes that a run adds to the disk, likewise; 0: any number
	Servers      []MCPServer   // in addition to the tools of a Spec
	Registries   []Registry    // that the egress proxy adds a credential for
	Redactor     *Redactor     // removes secrets from logs and events; nil: nothing is redacted
	Log          *slog.Logger  // nil: nothing is logged

	Getenv func(string) string // the worker's environment; nil: os.Getenv
}

// ModelToken fetches a token for the model that changes, such as one of a company's gateway. It is called again when a
// token is refused, and every few minutes.
type ModelToken func(context.Context) (string, error)

// The prices of models: see package gateway.
type (
	PriceList  = gateway.PriceList
	ModelPrice = gateway.ModelPrice
	Price      = gateway.Price
)

// Sandbox selects how the processes of a run are isolated from the rest of the machine.
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

	keepers *keeper.Program
	sandbox *sandbox.Bwrap

	model   *gateway.Upstream // how all runs reach the model
	network *egress.Network   // how they reach other hosts

	// Limits for the CLI's first answer, its exit after the end of the session, its silence, its answer to a ping, for
	// the keeper after Grace, and for the wait of a run or a script for the first measurement of its disk; and the
	// interval at which errand asks the CLI for its usage. Tests shorten them.
	startLimit, exitLimit, pingAfter, pingLimit, keeperLimit, diskPatience, usedEvery time.Duration

	walk dirtree.Walker // measures the disk; tests delay it

	silentLimit time.Duration // silence of the worker after which a keeper ends its run; tests shorten it
}

// New checks the configuration, but not the CLI or the sandbox: see Health. It makes this process a child subreaper,
// which inherits the processes that a killed keeper leaves, and those that other children leave. Dead ones are reaped
// after each run. If the process may manage its control group, New moves it into a child of that.
func New(c Config) (*Runner, error) {
	if c.LogDir == "" {
		return nil, errors.New("create runner: LogDir is empty")
	}
	r := &Runner{
		cfg: c, log: c.Log, getenv: c.Getenv,
		startLimit: time.Minute, exitLimit: 20 * time.Second, pingAfter: pingAfter, pingLimit: pingLimit,
		keeperLimit: keeper.EndTimeout, diskPatience: diskPatience, usedEvery: usedEvery,
		silentLimit: keeper.WorkerTimeout, keepers: &keeper.Program{Path: c.Keeper, Log: c.Log}, walk: dirtree.Walk,
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.getenv == nil {
		r.getenv = os.Getenv
	}
	problems := slices.Concat(CheckServers(c.Servers, r.getenv), CheckRegistries(c.Registries, r.getenv),
		CheckCredentials(c.Credentials, r.getenv))
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("create runner: %w", err)
	}
	if r.cfg.Grace <= 0 {
		r.cfg.Grace = defaultGrace
	}
	named, err := namedCredentials(c, r.getenv)
	if err != nil {
		return nil, fmt.Errorf("create runner: %w", err)
	}
	r.model, err = gateway.NewUpstream(gateway.Config{
		BaseURL: c.BaseURL, Credentials: named, Models: c.Models, Direct: c.Direct, Headers: c.ModelHeaders,
		Getenv: r.getenv, Log: r.log,
	})
	if err != nil {
		return nil, fmt.Errorf("create runner: reach the model: %w", err)
	}
	r.network = egress.NewNetwork(egress.Config{Getenv: r.getenv, Log: r.log})
	switch r.cfg.Sandbox = cmp.Or(c.Sandbox, SandboxNone); r.cfg.Sandbox {
	case SandboxNone, SandboxBwrap:
	default:
		return nil, fmt.Errorf("create runner: sandbox %q is unknown", c.Sandbox)
	}
	r.sandbox = sandbox.New(sandbox.Config{
		Enabled: r.cfg.Sandbox == SandboxBwrap, Find: func() string { return onPath("bwrap", r.getenv("PATH")) },
		TempDir: c.TempDir, Hidden: append(slices.Clone(c.Hidden), c.LogDir), Shown: c.Shown, Log: r.log,
		CheckOverlays: r.keepers.CheckOverlays,
	})
	if r.keepers.Groups, err = keeper.FindGroups(); err != nil {
		r.log.Info("runs have no control groups, so only their keepers limit memory and processes", "why", err)
	} else {
		r.log.Info("each run has a control group")
	}
	if err := keeper.BecomeSubreaper(); err != nil {
		r.log.Warn("processes that outlive their keeper can outlive their run", "err", err)
	}
	return r, nil
}

var runID = regexp.MustCompile(`^[a-z0-9.-]{1,80}$`)

// cli returns the path of the executable to run.
func (r *Runner) cli() (string, *Error) {
	path, err := Find(r.cfg.CLI, r.getenv("PATH"))
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
func (r *Runner) check(s *Spec) *Error {
	if !runID.MatchString(s.ID) || s.ID[0] == '.' || s.ID[0] == '-' {
		return NewError(ClassInternal, fmt.Sprintf("run ID %q is not of the form [a-z0-9.-]{1,80}", s.ID))
	}
	if tools.BuiltIn(s.Profile) == nil {
		return NewError(ClassInternal, fmt.Sprintf("profile %q is unknown", s.Profile))
	}
	for _, word := range []string{s.Model, s.Effort} {
		if word != "" && !argument.Valid(word) {
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
	info, err := os.Stat(s.start())
	switch {
	case !filepath.IsAbs(s.Dir):
		return NewError(ClassWorkspace, fmt.Sprintf("working directory %q is not absolute", s.Dir))
	case s.Folder != "" && !filepath.IsLocal(s.Folder):
		return NewError(ClassWorkspace, fmt.Sprintf("directory to start in %q is not below %q", s.Folder, s.Dir))
	case err != nil:
		return NewError(ClassWorkspace, "working directory: "+err.Error())
	case !info.IsDir():
		return NewError(ClassWorkspace, "working directory "+s.start()+" is not a directory")
	case unix.Access(s.start(), unix.R_OK|unix.X_OK) != nil:
		return NewError(ClassWorkspace, "working directory "+s.start()+" cannot be read by this user")
	}
	return nil
}

// KeeperMain must be the first call of main and of TestMain. In a process that was started as the keeper of a run it
// runs the keeper and exits; in any other process it returns at once. A program that has not called it can start no run
// unless errand-keeper is installed beside it.
func KeeperMain() { supervise.Main() }

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

// SecretForms returns the texts in which a secret commonly appears, for a search. A very short secret has none.
func SecretForms(secret string) []string { return redact.Forms(secret) }
