package agent

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/agent/internal/tools"
)

// arguments is the CLI's command line. /proc shows it to everybody, so nothing a person wrote is in it but the checked name of a model
// or a level of effort; prompt and context go by stdin, and what may hold secrets by files of the run's own.
// Values are joined to their flags with "=", because a value that starts with a dash would otherwise be read as a flag.
func (r *Runner) arguments(cli string, s Spec, resume *Session, session string, d session.Dirs) ([]string, error) {
	args := []string{
		cli, "--print", "--output-format=stream-json", "--input-format=stream-json", "--verbose", "--include-partial-messages",
		"--permission-prompt-tool=stdio", "--permission-mode=manual", "--tools=" + strings.Join(tools.BuiltIn(s.Profile), ","),
		// A follow-up brings its own context; the recorded one would be used instead (claude-cli.md §3, --system-prompt).
		"--system-prompt-snapshot=off",
	}
	// Neither hooks nor MCP servers of the checkout: both are commands that would run unasked (claude-cli.md §8).
	args = append(args, "--strict-mcp-config")
	sources, err := settings(s, d)
	if err != nil {
		return nil, err
	}
	servers, err := r.serverArguments(s, d)
	if err != nil {
		return nil, err
	}
	args = append(append(args, sources...), servers...)
	if resume != nil {
		args = append(args, "--resume="+resume.ID)
	} else {
		args = append(args, "--session-id="+session)
	}
	for _, dir := range s.further() {
		args = append(args, "--add-dir="+dir)
	}
	if s.Model != "" {
		args = append(args, "--model="+s.Model)
	}
	if s.Effort != "" {
		args = append(args, "--effort="+s.Effort)
	}
	if s.MaxUSD > 0 {
		args = append(args, "--max-budget-usd="+strconv.FormatFloat(s.MaxUSD, 'f', -1, 64))
	}
	return args, nil
}

// inherited is what the CLI gets of the worker's environment: what a program needs to find its way about. A proxy's address may hold a
// password, which the agent's tools then see (docs/security.md).
var inherited = []string{
	"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// environment is the CLI's whole environment.
func (r *Runner) environment(s Spec, d session.Dirs, a gateway.Access) []string {
	env := map[string]string{
		"HOME": d.Home, "TMPDIR": d.Temp, "TERM": "dumb", "SHELL": "/bin/bash",
		"CLAUDE_CONFIG_DIR": d.Config, "CLAUDE_CODE_TMPDIR": d.Temp,
		// The only connections are to the model: the rest would reach outside, and the updater would undo the pinned version.
		"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		// The CLI must not read files by itself that a prompt, or an argument of a command or skill, names as @path: see callable.
		"CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
		// Work that outlives its turn would outlive its answer.
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_DISABLE_CRON": "1",
		// A server of tools that hangs holds up the first turn: for 10 s instead of 30. It is waited for, so that init can tell whether
		// it is there.
		"MCP_TIMEOUT": "10000", "MCP_CONNECTION_NONBLOCKING": "0",
		"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1", "CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1",
		"GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": "errand", "GIT_AUTHOR_EMAIL": "errand@localhost",
		"GIT_COMMITTER_NAME": "errand", "GIT_COMMITTER_EMAIL": "errand@localhost",
		keeper.RunVariable: s.ID, keeper.WorkerVariable: keeper.WorkerMark(),
	}
	for _, name := range inherited {
		if v := r.getenv(name); v != "" {
			env[name] = v
		}
	}
	if a.BaseURL != "" {
		env["ANTHROPIC_BASE_URL"] = a.BaseURL
	}
	name, value := a.Credential.Variable()
	if name != "" {
		env[name] = value
	}
	maps.Copy(env, r.cfg.Env)
	exempt(env, "127.0.0.1") // the gateway is not behind the proxy
	list := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

// exempt keeps host out of the reach of a proxy that env may name. Some programs read the one spelling first, some the other.
func exempt(env map[string]string, host string) {
	upper, lower := env["NO_PROXY"], env["no_proxy"]
	for name, hosts := range map[string]string{"NO_PROXY": cmp.Or(upper, lower), "no_proxy": cmp.Or(lower, upper)} {
		if hosts != "*" { // which means all only where it stands alone
			hosts = strings.TrimPrefix(hosts+","+host, ",")
		}
		env[name] = hosts
	}
}
