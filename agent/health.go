package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/sandbox"
	"github.com/errand-fleet/errand/agent/internal/session"
)

// Health is what can be found out about the CLI, and about the protection of runs, without spending anything. It is
// published as JSON.
type Health struct {
	OK       bool    `json:"ok"`
	Path     string  `json:"path,omitempty"`
	Version  string  `json:"version,omitempty"`
	LoggedIn bool    `json:"logged_in"`
	Method   string  `json:"method,omitempty"`   // api_key, oauth_token, …
	Keeper   string  `json:"keeper,omitempty"`   // path of errand-keeper, or "itself" if keepers are this program
	Sandbox  string  `json:"sandbox,omitempty"`  // of runs: bwrap or none
	Posture  Posture `json:"posture,omitempty"`  // empty if no run can start
	Gateway  bool    `json:"gateway"`            // runs reach the model through a gateway and have no credential
	Private  bool    `json:"private"`            // tools of the agent cannot read this process's memory and environment
	Problem  string  `json:"problem,omitempty"`  // what is wrong, for operators
	Remedy   string  `json:"remedy,omitempty"`   // what to do about it
	Sentence string  `json:"sentence,omitempty"` // Problem for a task's author, without this machine's names and paths
	Error    *Error  `json:"-"`                  // Problem for a run that cannot start; nil when OK

	Notices []string `json:"notices,omitempty"` // what else an operator should know, and what to do about it
}

// healthLimit bounds each of the two commands. They take 20 and 140 ms, and many times that when runs use all
// processors.
const healthLimit = 30 * time.Second

// Health asks the CLI for its version and whether it has a credential, but not the model whether it accepts that
// credential.
func (r *Runner) Health(ctx context.Context) Health {
	h, why := r.protection(ctx)
	if why != nil {
		return h.failed(lacking(noSandbox, why.Problem, why.Remedy), why.Problem, why.Remedy)
	}
	if why := r.checkKeeper(ctx, &h); why != nil {
		return h.failed(lacking(noKeeper, why.Problem, why.Remedy), why.Problem, why.Remedy)
	}
	fail := func(c Class, problem, remedy string) Health { return h.failed(NewError(c, problem), problem, remedy) }
	cli, e := r.cli()
	if e != nil {
		return fail(ClassCLIMissing, e.Message, "run npm ci, or set ERRAND_CLAUDE to its path (docs/deploy.md)")
	}
	h.Path = cli
	dirs, err := session.Make(r.cfg.TempDir)
	if err != nil {
		return fail(ClassWorkspace, err.Error(), session.Remedy(err))
	}
	defer func() { _ = dirs.Remove() }()
	out, err := r.ask(ctx, cli, dirs, "--version")
	if errors.Is(err, context.DeadlineExceeded) {
		return fail(ClassInternal, "claude --version did not answer within "+healthLimit.String(),
			"check the load of this machine")
	}
	if err != nil {
		return fail(ClassCLIMissing, "claude --version: "+err.Error(),
			"run npm ci (with install scripts), or set ERRAND_CLAUDE (docs/deploy.md)")
	}
	h.Version = version.FindString(string(out))
	if h.Version == "" || older(h.Version, MinCLI) {
		return fail(ClassCLIVersion,
			fmt.Sprintf("claude %s is older than %s", cmp.Or(h.Version, "(unknown)"), MinCLI),
			"run npm ci, which installs the pinned version")
	}
	if why := h.Untested(); why != "" {
		h.Notices = append(h.Notices, why)
	}
	// Exit code 1 means "no", so only the JSON counts.
	out, err = r.ask(ctx, cli, dirs, "auth", "status")
	if errors.Is(err, context.DeadlineExceeded) {
		return fail(ClassInternal, "claude auth status did not answer within "+healthLimit.String(),
			"check the load of this machine")
	}
	var auth struct {
		LoggedIn bool   `json:"loggedIn"`
		Method   string `json:"authMethod"`
	}
	if json.Unmarshal(out, &auth) != nil {
		return fail(ClassAuth, "claude auth status printed no valid answer", "run it by hand and look at its output")
	}
	h.LoggedIn, h.Method = auth.LoggedIn, auth.Method
	if !h.LoggedIn {
		return fail(ClassAuth, "claude has no credential",
			"set ANTHROPIC_API_KEY or another credential (docs/models.md)")
	}
	h.OK = true
	return h
}

// Untested says that the CLI is newer than the tested one, and what to do about that; "" if it is not.
func (h Health) Untested() string {
	if !older(TestedCLI, h.Version) {
		return ""
	}
	return "the CLI " + h.Version + " is newer than " + TestedCLI + ", with which errand is tested: " +
		"`worker check-cli` says what differs"
}

func (h Health) failed(e *Error, problem, remedy string) Health {
	h.Problem, h.Remedy, h.Error, h.Sentence = problem, remedy, e, e.User
	return h
}

// checkKeeper finds out which program the keepers of runs execute.
func (r *Runner) checkKeeper(ctx context.Context, h *Health) *keeper.Unavailable {
	path, why := r.keepers.Name(ctx)
	if why != nil {
		return why
	}
	if h.Keeper = path; path == "" {
		h.Keeper = "itself"
		h.Notices = append(h.Notices,
			"each run takes some 10 MB and 10 ms more than it needs, because its keeper is this program: install "+
				keeper.Name+" beside it, from the same build")
	}
	return nil
}

// Protection returns the part of Health that needs no CLI. The error says why no run can start, and what to do about
// it.
func (r *Runner) Protection(ctx context.Context) (Health, error) {
	h, why := r.protection(ctx)
	if why != nil {
		return h, why
	}
	return h, nil
}

// protection returns the part of Health about the isolation of runs. why is set if no run may start without a better
// one.
func (r *Runner) protection(ctx context.Context) (h Health, why *sandbox.Unavailable) {
	h = Health{Sandbox: string(SandboxNone), Gateway: r.model.Gated()}
	bwrap, why := r.sandbox.Path(ctx)
	switch {
	case why != nil:
		h.Sandbox = ""
		return h, why
	case bwrap != "":
		h.Sandbox, h.Posture = string(SandboxBwrap), Sandboxed
	default:
		if h.Posture = Shared; r.cfg.Alone {
			h.Posture = OneTask
		}
		for _, file := range r.cfg.Secrets {
			if unix.Access(file, unix.R_OK) == nil {
				h.Notices = append(h.Notices, "the agent's tools can read the secrets in "+file+": "+
					"pass them in the environment, from a file that only root can read "+
					"(docs/security.md), or use a sandbox")
			}
		}
	}
	if r.cfg.Direct && r.cfg.Credential != (Credential{}) {
		h.Notices = append(h.Notices, "runs get the model's credential, and the agent's tools may read it: "+
			"set ERRAND_GATEWAY=on, unless only the CLI's own requests may use this credential")
	}
	if remedy := r.shared(ctx); remedy != "" {
		h.Notices = append(h.Notices, "runs share the machine's network, so the egress list is not in force: "+remedy)
	}
	h.Private = true // in a sandbox: a tool sees only processes of its run, and has no capabilities even as root
	if h.Sandbox != string(SandboxBwrap) {
		var notices []string
		h.Private, notices = r.exposure()
		h.Notices = append(h.Notices, notices...)
	}
	return h, nil
}

// shared returns what would give runs their own network, or "" if they have it.
func (r *Runner) shared(ctx context.Context) (remedy string) {
	switch {
	case r.cfg.Sandbox != SandboxBwrap:
		return "use a sandbox (ERRAND_SANDBOX)"
	case r.cfg.Direct:
		return "set ERRAND_GATEWAY=on"
	case !r.sandbox.OwnNetwork(ctx):
		return "permit network namespaces (docs/security.md)"
	}
	return ""
}

// exposure returns what tools without a sandbox can read from processes that have the fleet's secrets: this one, and
// others of its user.
func (r *Runner) exposure() (private bool, notices []string) {
	private, remedy := keeper.Private()
	if !private {
		return false, []string{"the agent's tools can read this process's memory and environment: " + remedy}
	}
	var secret []string
	for _, v := range os.Environ() {
		if r.cfg.Redactor.String(v) != v {
			secret = append(secret, v)
		}
	}
	if holders := keeper.WithEnvironment(secret); len(holders) > 0 {
		private = false
		notices = append(notices,
			fmt.Sprintf("the agent's tools can read secrets in the environment of %s: make root the owner of their "+
				"programs, with mode 0711, or start them as another user", strings.Join(holders, ", ")))
	}
	if readable := r.keepers.Readable(); len(readable) > 0 {
		notices = append(notices,
			fmt.Sprintf("the agent's tools can read the memory and environment of processes of %s while they start: "+
				"make root its owner, with mode 0711", strings.Join(readable, " and ")))
	}
	return private, notices
}

// ask runs a harmless command of the CLI in the environment of a run.
func (r *Runner) ask(ctx context.Context, cli string, d session.Dirs, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, cli, args...)
	way := r.model.Sample()
	cmd.Dir, cmd.Env = d.Home, r.environment(Spec{ID: "health"}, d, way)
	if secret := way.Credential.Piped(); secret != "" {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer read.Close()
		_, _ = write.WriteString(secret)
		_ = write.Close()
		cmd.ExtraFiles = []*os.File{read}
	}
	out, err := keeper.Output(cmd)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return out, err
}

var version = regexp.MustCompile(`\d+\.\d+\.\d+`)

// older compares two versions of the form a.b.c.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, _ := strconv.Atoi(x[i])
		n, _ := strconv.Atoi(y[i])
		if m != n {
			return m < n
		}
	}
	return false
}

// MinCLI is the oldest version that runs are safe with. Older versions do not submit the shell commands in the text of
// skills (2.1.329: see skillShell); still older ones cannot be kept from reading files that a text names (2.1.268: see
// callable).
const MinCLI = "2.1.332"

// Find returns the absolute path of the CLI: the one that is named explicitly, by a path or by a name on path.
// Otherwise it is the first on path (a list as in $PATH), or else the one that npm installed beside this program or one
// directory above it, or else the one in /opt/errand, where packages put it. It does not look where the process happens
// to work, which may be a stranger's checkout.
func Find(explicit, path string) (string, error) {
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
	places := path
	if program, err := os.Executable(); err == nil {
		places = besides(path, filepath.Dir(program))
	}
	if c := onPath("claude", places+string(filepath.ListSeparator)+packaged); c != "" {
		return c, nil
	}
	return "", NewError(ClassCLIMissing, "claude is neither on PATH nor installed beside this program")
}

// besides appends to path where npm installs programs for one in dir, such as bin of a checkout.
func besides(path, dir string) string {
	for _, d := range []string{dir, filepath.Dir(dir)} {
		path += string(filepath.ListSeparator) + filepath.Join(d, "node_modules", ".bin")
	}
	return path
}

// packaged is where docs/deploy.md and the Debian package install the CLI.
const packaged = "/opt/errand/node_modules/.bin"

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
