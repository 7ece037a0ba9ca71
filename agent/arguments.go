package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/agent/internal/tools"
)

// arguments returns the CLI's command line. It is public in /proc, so nothing that a person wrote is in it except the
// validated name of a model or a level of effort. The prompt and the context go through stdin, and values that may be
// secret through files of the run. Values are joined to their flags with "=", because a value that starts with a dash
// would otherwise be read as a flag.
func (r *Runner) arguments(cli string, s Spec, resume *Session, session string, d session.Dirs) ([]string, error) {
	args := []string{
		cli, "--print", "--output-format=stream-json", "--input-format=stream-json", "--verbose",
		"--include-partial-messages", "--permission-prompt-tool=stdio", "--permission-mode=manual",
		"--tools=" + strings.Join(tools.BuiltIn(s.Profile), ","),
		// A follow-up has a new context; the CLI would use the recorded one instead.
		"--system-prompt-snapshot=off",
	}
	// Neither hooks nor MCP servers of the checkout: both are commands that would run without being asked for.
	args = append(args, "--strict-mcp-config")
	sources, err := settingArguments(s, d)
	if err != nil {
		return nil, err
	}
	servers, err := r.serverArguments(s, d)
	if err != nil {
		return nil, err
	}
	plugins, err := pluginArguments(s, d)
	if err != nil {
		return nil, err
	}
	args = slices.Concat(args, sources, servers, plugins)
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
	if s.MaxUSD > 0 && !r.model.Gated() { // a gateway has the maximum, also at other prices than the CLI knows
		args = append(args, "--max-budget-usd="+strconv.FormatFloat(s.MaxUSD, 'f', -1, 64))
	}
	return args, nil
}

// A trusted checkout brings its own settings, CLAUDE.md, AGENTS.md, agents, commands and MCP servers. The CLI also
// looks for some of them in the directories above (observed with 2.1.329: CLAUDE.md, AGENTS.md and .mcp.json, whose
// commands it runs). These are not trusted: a worker's state directory may be inside a person's project.

// settingArguments makes the CLI load the settings of a trusted checkout but nothing from the directories above it, and
// only those of errand for any other.
func settingArguments(s Spec, d session.Dirs) ([]string, error) {
	sources, settings := "--setting-sources=", map[string]any{}
	if s.ownNetwork { // the CLI would ask api.anthropic.com about each page, and fetch none without an answer (2.1.329)
		settings["skipWebFetchPreflight"] = true
	}
	if s.Profile != Write { // they allow all skills, and one of the CLI's own might run something
		settings["disableBundledSkills"] = true
	}
	if s.trusts() {
		sources, settings["claudeMdExcludes"] = "--setting-sources=project", memoryFilesAbove(s.Dir)
		if s.ofProject() {
			settings["claudeMdExcludes"] = []string{"/**"}
		}
	}
	if !s.trusts() || s.inert { // shell in the text of skills and commands; otherwise see skillShell
		settings["disableSkillShellExecution"] = true
	}
	if s.trusts() && s.inert { // the CLI would run both before it answers initialize (seen with 2.1.329)
		settings["disableAllHooks"], settings["apiKeyHelper"] = true, ""
	}
	path, err := d.WriteJSON("settings.json", settings)
	if err != nil {
		return nil, err
	}
	return []string{sources, "--settings=" + path}, nil
}

// memoryFilesAbove returns patterns of all memory files in the directories above dir, whatever their names.
func memoryFilesAbove(dir string) []string {
	var patterns []string
	for dir = filepath.Clean(dir); dir != "/"; {
		dir = filepath.Dir(dir)
		for _, name := range []string{"*", ".claude/*", ".claude/rules/**"} {
			patterns = append(patterns, strings.TrimSuffix(escapeGlob.Replace(dir), "/")+"/"+name)
		}
	}
	return patterns
}

// escapeGlob escapes the special characters of a pattern.
var escapeGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`,
	`(`, `\(`, `)`, `\)`, `!`, `\!`, `+`, `\+`, `@`, `\@`)

// ownServers returns the list of MCP servers of a trusted checkout; empty if it has none that can be read. If it is
// named explicitly, the CLI reads no other list.
func (s Spec) ownServers(dir string) string {
	path := filepath.Join(dir, ".mcp.json")
	if info, err := os.Lstat(path); !s.trusts() || err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return ""
	}
	if b, err := os.ReadFile(path); err != nil || !json.Valid(b) {
		return ""
	}
	return path
}

// serverArguments tells the CLI which servers exist, in a file that only this run can read since it may hold secrets,
// and that their tools and those of Spec.Tools need no permission.
func (r *Runner) serverArguments(s Spec, d session.Dirs) ([]string, error) {
	if s.inert {
		return nil, nil
	}
	var args []string
	for _, dir := range slices.Compact([]string{s.Dir, s.start()}) {
		if path := s.ownServers(dir); path != "" {
			args = append(args, "--mcp-config="+path)
		}
	}
	entries := map[string]tools.Entry{}
	for _, m := range r.cfg.Servers {
		if !m.Serves(s.Profile) {
			continue
		}
		e, err := m.Entry(tools.Vars{Thread: s.Thread, Repo: s.Repo, Run: s.ID}, r.getenv)
		if err != nil {
			return nil, fmt.Errorf("configure MCP server %s: %w", m.Name, err)
		}
		entries[m.Name] = e
	}
	if len(entries) > 0 {
		path, err := d.WriteJSON("mcp.json", map[string]any{"mcpServers": entries})
		if err != nil {
			return nil, err
		}
		args = append(args, "--mcp-config="+path)
	}
	if names := r.servers(s); len(names) > 0 {
		args = append(args, "--allowedTools=mcp__"+strings.Join(names, ",mcp__"))
	}
	return args, nil
}

// localeVariables are the inherited variables that a Spec can replace.
var localeVariables = []string{"LANG", "LC_ALL", "LC_CTYPE", "TZ"}

// inherited lists the variables that the CLI gets from the worker's environment. The address of a proxy may contain a
// password, which the agent's tools can then see (docs/environment.md).
var inherited = []string{
	"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// environment returns the CLI's whole environment. With its own network a run reaches no proxy but its own.
func (r *Runner) environment(s Spec, d session.Dirs, a gateway.Access) []string {
	name, email, _ := strings.Cut(strings.TrimSuffix(cmp.Or(s.Author, "errand <errand@localhost>"), ">"), " <")
	env := map[string]string{
		"HOME": d.Home, "TMPDIR": d.Temp, "TERM": "dumb", "SHELL": "/bin/bash",
		"CLAUDE_CONFIG_DIR": d.Config, "CLAUDE_CODE_TMPDIR": d.Temp,
		// The CLI should connect to the model only, and the updater would undo the pinned version.
		"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		// The CLI must not read files that a prompt, or an argument of a command or skill, names as @path: see
		// callable.
		"CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
		// Work that outlives its turn would outlive its answer.
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_DISABLE_CRON": "1",
		// An MCP server that hangs delays the first turn, by 10 s instead of 30. The CLI waits for it, so that init can
		// report whether it is available.
		"MCP_TIMEOUT": "10000", "MCP_CONNECTION_NONBLOCKING": "0",
		"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1", "CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1",
		"GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_COMMITTER_NAME": name,
		"GIT_COMMITTER_EMAIL": email, keeper.RunVariable: s.ID, keeper.WorkerVariable: keeper.WorkerMark(),
	}
	for _, name := range inherited {
		if v := r.getenv(name); v != "" {
			env[name] = v
		}
	}
	for _, given := range []map[string]string{s.exposed(), s.Env} {
		for name, v := range given {
			if _, set := env[name]; !set || slices.Contains(localeVariables, name) {
				env[name] = inHome(v, d.Home)
			}
		}
	}
	for _, dir := range slices.Backward(s.Path) {
		if dir = inHome(dir, d.Home); !filepath.IsAbs(dir) {
			dir = filepath.Join(s.Dir, dir)
		}
		env["PATH"] = strings.TrimSuffix(dir+":"+env["PATH"], ":")
	}
	if a.BaseURL != "" {
		env["ANTHROPIC_BASE_URL"] = a.BaseURL
	}
	name, value := a.Credential.Variable()
	if name != "" {
		env[name] = value
	}
	maps.Copy(env, a.Cloud)
	for name, model := range a.Names {
		env["ANTHROPIC_DEFAULT_"+strings.ToUpper(name)+"_MODEL"] = model
	}
	maps.Copy(env, r.cfg.Env)
	if s.ownNetwork {
		r.enclose(env, s, d)
	}
	exempt(env, "127.0.0.1") // the gateway is not behind the proxy
	list := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

// inHome replaces a leading ~/ by the home of the run.
func inHome(value, home string) string {
	if below, ok := strings.CutPrefix(value, "~/"); ok {
		return filepath.Join(home, below)
	}
	return value
}

// exempt makes connections to host bypass a proxy that env may name. Some programs read one spelling first, some the
// other.
func exempt(env map[string]string, host string) {
	upper, lower := env["NO_PROXY"], env["no_proxy"]
	for name, hosts := range map[string]string{"NO_PROXY": cmp.Or(upper, lower), "no_proxy": cmp.Or(lower, upper)} {
		if hosts != "*" { // matches all hosts, but not within a list
			hosts = strings.TrimPrefix(hosts+","+host, ",")
		}
		env[name] = hosts
	}
}

// callable lists the commands and agents of a session that a message can call by name, as reported by its CLI.
//
// In text that a person typed, the CLI expands a /command at the beginning, agents (@agent-name), and files (@path),
// which it reads at once: no hook, permission or rule sees that, and no log shows it. So every message is marked as not
// typed ("client_composed"), except one that begins with a command of the list; and an agent is called in a separate
// block, because the CLI expands only the last block. The CLI would still search arguments of commands, those of skills
// that the model uses, and the text of commands for files: CLAUDE_CODE_DISABLE_FILE_MENTIONS in its environment turns
// that off everywhere (all observed with 2.1.329).
//
// Commands and agents of the plugins with Spec.Instructions may be called without the plugin's name.
type callable struct {
	commands, agents map[string]string // their full names, by what they may be called
}

// readCallable reads them from the CLI's answer to the initialize request. A profile without the tool that starts
// agents has no agents.
func readCallable(answer jsontext.Value, s Spec) callable {
	n := callable{map[string]string{}, map[string]string{}}
	told, err := readGreeting(answer)
	if err != nil {
		return n // nothing is expanded then
	}
	add := func(all map[string]string, full, name string) {
		if all[name] == "" || full == name {
			all[name] = full
		}
	}
	for _, c := range told.Commands {
		for _, name := range append(c.Aliases, c.Name, s.withoutPlugin(c.Name)) {
			if !forTerminal(c.Name) {
				add(n.commands, c.Name, name)
			}
		}
	}
	for _, a := range told.Agents {
		if slices.Contains(tools.BuiltIn(s.Profile), "Agent") {
			add(n.agents, a.Name, a.Name)
			add(n.agents, a.Name, s.withoutPlugin(a.Name))
		}
	}
	return n
}

// called returns what a message calls by name, with its full name: an agent, or a command at its beginning.
func (n callable) called(m Message) (agent, command string) {
	switch {
	case m.Agent != "":
		return n.agents[m.Agent], ""
	case m.Composed:
		return "", ""
	}
	if found := agentCall.FindStringSubmatch(m.Text); found != nil {
		agent = n.agents[strings.TrimRight(strings.Join(found[1:], ""), ".:")]
	}
	if agent != "" {
		return agent, ""
	}
	return "", n.commands[commandOf(m.Text)]
}

// agentCall matches an agent at the beginning of a text, in each form that the CLI knows and as people write it: @name.
var agentCall = regexp.MustCompile(`^\s*@(?:agent-([\w:.@-]+)|"([\w:.@-]+) \(agent\)"|([\w:.@-]+))`)

// commandOf returns the name of the command at the beginning of a text, or "".
func commandOf(text string) string {
	word, found := strings.CutPrefix(strings.TrimSpace(text), "/")
	if i := strings.IndexAny(word, " \n\t"); i >= 0 {
		word = word[:i]
	}
	if !found {
		return ""
	}
	return word
}

// check returns an error for an agent that does not exist: the CLI would treat its name as text.
func (n callable) check(m Message) error {
	switch {
	case m.Agent == "" || n.agents[m.Agent] != "":
		return nil
	case len(n.agents) == 0:
		return fmt.Errorf("unknown agent %q: this run cannot call agents", m.Agent)
	}
	names := strings.Join(slices.Sorted(maps.Keys(n.agents)), ", ")
	return fmt.Errorf("unknown agent %q, available: %s", m.Agent, names)
}

// unfit is the cause that ends a run whose prompt the CLI cannot accept.
type unfit struct{ error }

func isUnfit(cause error) bool {
	_, is := errors.AsType[unfit](cause)
	return is
}

// QuoteName quotes the name of a file for a prompt. It escapes @ after white space and the marks after which the CLI
// would see a mention.
func QuoteName(name string) string {
	return beforeMention.ReplaceAllString(strconv.Quote(name), `${1}\u0040`)
}

var beforeMention = regexp.MustCompile(`([\s。、？！])@`)
