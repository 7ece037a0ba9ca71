package agent

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// arguments is the CLI's command line. /proc shows it to everybody, so nothing a person wrote is in it but the checked name of a model
// or a level of effort; prompt and context go by stdin.
// Values are joined to their flags with "=", because a value that starts with a dash would otherwise be read as a flag.
func arguments(cli string, s Spec, resume *Session, session string) []string {
	args := []string{
		cli, "--print", "--output-format=stream-json", "--input-format=stream-json", "--verbose", "--include-partial-messages",
		"--permission-prompt-tool=stdio", "--permission-mode=manual", "--tools=" + strings.Join(tools[s.Profile], ","),
		// A follow-up brings its own context; the recorded one would be used instead (claude-cli.md §3, --system-prompt).
		"--system-prompt-snapshot=off",
	}
	// Neither hooks nor MCP servers of the checkout: both are commands that would run unasked (claude-cli.md §8).
	args = append(args, "--strict-mcp-config")
	if !s.trusts() {
		args = append(args, "--setting-sources=")
	}
	if resume != nil {
		args = append(args, "--resume="+resume.ID)
	}
	if resume == nil || s.Fork {
		args = append(args, "--session-id="+session)
	}
	if resume != nil && s.Fork {
		args = append(args, "--fork-session")
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
	return args
}

// inherited is what the CLI gets of the worker's environment: what a program needs to find its way about. A proxy's address may hold a
// password, which the agent's tools then see (docs/security.md).
var inherited = []string{
	"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// environment is the CLI's whole environment.
func (r *Runner) environment(s Spec, d runDirs) []string {
	env := map[string]string{
		"HOME": d.Home, "TMPDIR": d.Temp, "TERM": "dumb", "SHELL": "/bin/bash",
		"CLAUDE_CONFIG_DIR": d.Config, "CLAUDE_CODE_TMPDIR": d.Temp,
		// The only connections are to the model: the rest would reach outside, and the updater would undo the pinned version.
		"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		// Work that outlives its turn would outlive its answer.
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_DISABLE_CRON": "1",
		// A server of tools that hangs holds up the first turn: for 10 s instead of 30. It is waited for, so that init can tell whether
		// it is there.
		"MCP_TIMEOUT": "10000", "MCP_CONNECTION_NONBLOCKING": "0",
		"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1", "CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1",
		"GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": "errand", "GIT_AUTHOR_EMAIL": "errand@localhost",
		"GIT_COMMITTER_NAME": "errand", "GIT_COMMITTER_EMAIL": "errand@localhost",
		runMarker: s.ID,
	}
	for _, name := range inherited {
		if v := r.getenv(name); v != "" {
			env[name] = v
		}
	}
	if r.cfg.BaseURL != "" {
		env["ANTHROPIC_BASE_URL"] = r.cfg.BaseURL
	}
	name, value := r.cfg.Credential.variable()
	if name != "" {
		env[name] = value
	}
	maps.Copy(env, r.cfg.Env)
	list := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

// Credential is how the CLI proves itself to the model; the first one set is used.
type Credential struct {
	APIKey     string // handed over through a pipe: tools cannot see it
	OAuthToken string // likewise
	AuthToken  string // a gateway's bearer token; the CLI takes it from its environment only, where tools can see it
}

// credentialFD is the descriptor at which the keeper leaves the credential for the CLI.
const credentialFD = "3"

// variable is what the environment says about the credential.
func (c Credential) variable() (name, value string) {
	switch {
	case c.APIKey != "":
		return "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", credentialFD
	case c.OAuthToken != "":
		return "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR", credentialFD
	case c.AuthToken != "":
		return "ANTHROPIC_AUTH_TOKEN", c.AuthToken
	}
	return "", ""
}

// piped is what goes through the descriptor.
func (c Credential) piped() string {
	if c.APIKey != "" {
		return c.APIKey
	}
	return c.OAuthToken
}
