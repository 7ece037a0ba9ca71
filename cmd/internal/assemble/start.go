package assemble

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/store/objects"
	"github.com/errand-fleet/errand/tasks/worker"
)

// Load reads and checks the configuration. Its error is a [config.Problems] with everything that prevents a program of
// that role from starting, except problems that only Redis can reveal. For a role that runs tasks it also checks the
// user and the sandbox. The problems that lines of errand.yaml have come last, in their order. Both the start and
// -print-config use it.
func Load(getenv func(string) string, role config.Role) (config.Config, error) {
	alone := role == config.RoleOnce
	if alone {
		role = config.RoleWorker
	}
	c, err := config.Load(getenv, role)
	c.Worker.Alone = alone
	problems, ok := errors.AsType[config.Problems](err)
	if err != nil && !ok {
		return c, err
	}
	_, wrong := rules(c)
	problems = slices.Concat(problems, wrong, environments(c))
	if role != config.RoleWorker {
		problems = append(problems, checkSigningSecrets(c, getenv)...)
	}
	if role != config.RoleFrontdoor { // a front door starts no run
		problems = append(problems, unlessReported(problems, checkEntries(c, getenv))...)
	}
	if len(problems) == 0 {
		problems = readSecrets(c, getenv, role == config.RoleWorker || role == config.RoleStandalone)
	}
	if len(problems) == 0 {
		problems = try(c)
	}
	if role == config.RoleWorker || role == config.RoleStandalone {
		_, err := plugins(c)
		wrong, _ := errors.AsType[config.Problems](err)
		problems = slices.Concat(problems, unlessReported(problems, wrong), contained(&c), checkSigning(c))
	}
	if len(problems) == 0 {
		return c, nil
	}
	slices.SortStableFunc(problems, func(a, b config.Problem) int { return a.Line - b.Line })
	return c, problems
}

// try creates the parts, which do not connect yet, and closes them, to find errors that would stop the start, such as
// an invalid key.
func try(c config.Config) config.Problems {
	if c.Redis.URL == "" {
		c.Redis.URL = "redis://127.0.0.1:1/0" // a standalone system starts its own Redis
	}
	p, err := New(c, slog.New(slog.DiscardHandler), Options{})
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		return config.Problems{{Where: "the configuration", What: "cannot be used: " + err.Error()}}
	}
	return nil
}

// Notices returns findings about a valid configuration for the operator. The first one summarizes errand.yaml.
func Notices(c config.Config, environ []string) []store.Finding {
	list := []store.Finding{{What: c.Summary()}}
	if !c.Routed() {
		list[0].Severity = store.Note
		list[0].Why = "Every repository that errand's identity reaches may be worked on, and " +
			"nothing bounds what runs cost."
		list[0].Remedy = "Write errand.yaml (`enqueue init`, errand.example.yaml), or set ERRAND_CONFIG to its path."
	}
	list = append(list, rightsNotice(c)...)
	for _, p := range config.Unknown(environ) {
		list = append(list, store.Finding{
			Severity: store.Warning, What: p.Where + " " + p.What, Why: "A setting with a wrong name is not in force.",
			Remedy: p.Remedy,
		})
	}
	return list
}

// secretFiles returns the files with secrets of this process.
func secretFiles(c config.Config) []string {
	files := []string{".env"}
	keys := []string{c.GitHub.AppKeyFile, c.Commits.KeyFile, c.Redis.KeyFile}
	for _, name := range secretFileVariables {
		keys = append(keys, os.Getenv(name))
	}
	for _, one := range c.Routing.Credentials {
		keys = append(keys, one.File)
	}
	for _, key := range keys {
		if key != "" {
			files = append(files, key)
		}
	}
	for _, repository := range c.Routing.Repositories {
		files = append(files, repository.SecretFiles()...)
	}
	slices.Sort(files[1:])
	return files
}

// hidden returns the paths that no sandboxed run may see although the worker's user may: home directories, where
// people and programs keep credentials under more names than any list has; /run, whose sockets may give the rights of
// root or of the logged-in user; other files in the state directory; and errand's configuration. Missing paths do no
// harm.
func hidden(c config.Config) []string {
	paths := append(secretFiles(c), "/home", "/root", "/run", "/var/run", "/var/mail", "/var/spool", c.Paths.State)
	if c.Paths.File != "" {
		paths = append(paths, c.Paths.File)
	}
	if a, err := c.Redis.Address(); err == nil && a.Network == "unix" {
		paths = append(paths, a.Servers...)
	}
	// Only root can read these, so they matter to a worker that runs as root.
	keys, _ := filepath.Glob("/etc/ssh/ssh_host_*_key") // the pattern is well-formed
	paths = append(append(paths, keys...), "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-",
		"/etc/sudoers", "/etc/sudoers.d",
		"/etc/security/opasswd", "/etc/krb5.keytab", "/etc/ssl/private", "/etc/errand")
	home, err := os.UserHomeDir()
	if err != nil {
		return paths // the user has no home directory
	}
	if !ofSystem(home) {
		paths = append(paths, home)
	}
	// Hide these even if the home directory is shown because a task works there.
	for _, name := range []string{
		".aws", ".azure", ".bash_history", ".cargo/credentials.toml", ".claude", ".claude.json", ".config/gcloud",
		".config/gh", ".config/git", ".docker", ".git-credentials", ".gnupg", ".kube", ".local/share/keyrings",
		".netrc", ".npmrc", ".pgpass", ".pypirc", ".ssh", ".vault-token",
	} {
		paths = append(paths, filepath.Join(home, name))
	}
	return paths
}

// ofSystem reports whether a directory is the home of system users but needed by programs.
func ofSystem(dir string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(filepath.Clean(dir), "/"), "/")
	return slices.Contains([]string{
		"", "bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr", "nonexistent",
	}, first)
}

// shown returns the hidden paths that a run needs: those that the operator set, and those that the inherited
// environment and the configuration name.
func shown(c config.Config, hidden []string) []string {
	needed := []string{"/etc/resolv.conf", os.Getenv("SSL_CERT_FILE"), os.Getenv("NODE_EXTRA_CA_CERTS")}
	needed = append(needed, filepath.SplitList(os.Getenv("SSL_CERT_DIR"))...)
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		needed = append(needed, dir)
		if filepath.Base(dir) == "shims" { // of pyenv, asdf and others: they start programs beside this directory
			needed = append(needed, filepath.Dir(dir))
		}
	}
	for _, server := range c.Routing.MCP {
		needed = append(needed, server.Command)
	}
	paths := slices.Clone(c.Paths.Shown)
	for _, path := range needed {
		if !filepath.IsAbs(path) {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err == nil && !slices.ContainsFunc(hidden, func(h string) bool { return within(h, real) }) {
			paths = append(paths, real)
		}
	}
	return paths
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// WorkerURL returns the URL at which a worker that listens at an address can be reached for logs. An address of all
// interfaces becomes the machine's name. A loopback address stays and works on this machine only. The URL is empty if
// the fleet has no token.
func WorkerURL(c config.Config, listens net.Addr) string {
	if c.FleetToken() == "" {
		return ""
	}
	if c.Worker.URL != "" {
		return c.Worker.URL
	}
	host, port, err := net.SplitHostPort(listens.String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return ""
		}
	}
	return "http://" + net.JoinHostPort(host, port)
}

// retention returns how long a worker keeps data on its disk.
func retention(k config.Keep) worker.Retention {
	const gb, day = 1_000_000_000, 24 * time.Hour
	return worker.Retention{
		Logs:    worker.Bound{Age: 30 * day, Size: int64(k.LogsGB) * gb},
		Threads: worker.Bound{Age: 7 * day, Size: int64(k.ClonesGB) * gb},
	}
}

// sandbox returns the Runner's sandbox for ERRAND_SANDBOX; see contained for the rest.
func sandbox(c config.Config) agent.Sandbox {
	if c.Worker.Sandbox == config.SandboxAuto {
		return agent.SandboxBwrap
	}
	return agent.Sandbox(c.Worker.Sandbox)
}

// contained returns why a worker must not start although its settings are valid: its agents could do more than the
// operator has agreed to. It does not depend on the configured repositories or tools, because users' tasks run
// commands.
//
// A worker that has its container alone gets by without a sandbox where none works: contained then sets c to none.
func contained(c *config.Config) (problems config.Problems) {
	if os.Geteuid() == 0 && !c.Worker.AllowRoot {
		problems = append(problems, config.Problem{
			Where: "the worker's user", What: "is root: its agents could read what only root can",
			Remedy: "run it as an ordinary user, or set ERRAND_ALLOW_ROOT=true",
		})
	}
	if c.Worker.Sandbox != config.SandboxAuto {
		return problems
	}
	tried := *c
	// Mistakes in these are reported separately.
	tried.Routing.MCP, tried.Routing.Registries, tried.Routing.Credentials, tried.Cloud = nil, nil, nil, config.Cloud{}
	r, err := newRunner(tried, redactor(tried), slog.New(slog.DiscardHandler))
	if err != nil {
		return problems // load reports the setting
	}
	_, err = r.Protection(context.Background()) // has its own time limit
	if err != nil && c.Worker.Alone {
		c.Worker.Sandbox = config.SandboxNone
		return problems
	}
	if err != nil {
		problems = append(problems, config.Problem{
			Where: "ERRAND_SANDBOX", What: "is auto, and there is no sandbox: " + err.Error(),
			Remedy: "With none the runs are shared: " + agent.Shared.Protects(),
		})
	}
	return problems
}

// tellContainment logs what separates a worker's runs.
func tellContainment(r *agent.Runner, log *slog.Logger) {
	p, err := r.Protection(context.Background()) // has its own time limit
	level := slog.LevelInfo
	if p.Posture == agent.Shared {
		level = slog.LevelWarn
	}
	if err != nil {
		log.Error("no task can run without the sandbox", "why", err)
	} else {
		log.Log(context.Background(), level, "posture of runs", "posture", p.Posture, "protects", p.Posture.Protects())
	}
	for _, notice := range p.Notices {
		log.Warn("runs are not fully contained", "why", notice)
	}
}

// diagnoseLimit bounds how long a start waits for Redis.
const diagnoseLimit = 3 * time.Second

// checkStart logs findings about the configuration and Redis. A Redis that does not answer is not an error, see
// awaitRedis. A Redis that accepts connections without a password is, unless the operator allows it.
func (p *Parts) checkStart(ctx context.Context) error {
	p.logFindings(ctx, "configuration", p.notices)
	for _, f := range p.checkObjects(ctx) {
		if f.Why != "" {
			p.Log.Warn("objects", "what", f.What, "why", f.Why, "remedy", f.Remedy)
		}
	}
	unreachable, err := p.checkRedis(ctx)
	if unreachable != nil {
		p.connections.outage.failed(unreachable)
	}
	return err
}

// checkObjects tries whether values can be written to S3 and read again.
func (p *Parts) checkObjects(ctx context.Context) []doctor.Finding {
	s3, ok := p.objects.(*objects.S3)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseLimit)
	defer cancel()
	found := doctor.Finding{What: "objects in " + p.Config.Objects.URL}
	if remedy, err := s3.Check(ctx); err != nil {
		found.Why = "Large sessions, checkpoints and logs cannot be saved or read: " +
			strings.TrimSuffix(err.Error(), ".") + "."
		found.Remedy = cmp.Or(remedy, doctor.Unreachable(err, "the endpoint in ERRAND_OBJECTS"))
	}
	return []doctor.Finding{found}
}

func (p *Parts) logFindings(ctx context.Context, about string, findings []store.Finding) {
	levels := map[store.Severity]slog.Level{store.Fatal: slog.LevelError, store.Warning: slog.LevelWarn}
	for _, f := range findings {
		p.Log.Log(ctx, levels[f.Severity], about, "what", f.What, "why", f.Why, "remedy", f.Remedy) //nolint:sloglint // a constant
	}
}

// servers are the agent's servers of tools.
func servers(c config.Config) []agent.MCPServer {
	var list []agent.MCPServer
	for _, name := range slices.Sorted(maps.Keys(c.Routing.MCP)) {
		s := c.Routing.MCP[name]
		m := agent.MCPServer{
			Name: name, Type: serverType(s), Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL,
			Headers: s.Headers,
		}
		for _, p := range s.Profiles {
			m.Profiles = append(m.Profiles, agent.Profile(p))
		}
		list = append(list, m)
	}
	return list
}

// serverType returns how the CLI talks to a server of tools.
func serverType(s config.Server) string {
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		return agent.ServerStdio
	case s.Type == "" && err == nil && path.Base(u.Path) == "sse":
		return agent.ServerSSE
	}
	return cmp.Or(s.Type, agent.ServerHTTP)
}

// registries are the package registries with a credential.
func registries(c config.Config) (list []agent.Registry) {
	for _, r := range c.Routing.Registries {
		list = append(list, agent.Registry(r))
	}
	return list
}

// redactor knows every secret that errand was given.
func redactor(c config.Config) *agent.Redactor {
	all := slices.Concat(c.Secrets(), agent.ServerSecrets(servers(c), os.Getenv),
		agent.RegistrySecrets(registries(c), os.Getenv), agent.CredentialSecrets(credentials(c), os.Getenv))
	for _, reference := range c.Routing.SigningSecrets() {
		all = append(all, os.Getenv(reference.Variable()))
	}
	for _, values := range repositorySecrets(c, false) {
		all = slices.AppendSeq(all, maps.Values(values))
	}
	return agent.NewRedactor(all...)
}
