package tools

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// MCPServer is a server of tools outside this process, which the CLI of each run starts or connects to. The agent sees its tools as
// mcp__<name>__<tool>, and may call them without asking.
//
// In Args, and in the values of Env and Headers, {{.Thread}}, {{.Repo}} and {{.Run}} are replaced by the thread, repository and ID of the
// run. In Env and Headers {{env "NAME"}} is replaced by a variable of the worker's environment; give those that ServerSecrets returns to
// the redactor. The CLI expands ${NAME} from its own environment.
type MCPServer struct {
	Name     string // lower-case letters, digits and dashes
	Type     string // ServerStdio, ServerHTTP or ServerSSE
	Command  string // stdio: an absolute path, or a name to find on PATH; it runs in the directory of the run
	Args     []string
	Env      map[string]string // stdio: added to the CLI's environment
	URL      string            // http, sse
	Headers  map[string]string // http, sse
	Profiles []Profile         // that get it; empty: Write. Never Untrusted
}

// The values of MCPServer.Type.
const (
	ServerStdio = "stdio"
	ServerHTTP  = "http" // streamable HTTP
	ServerSSE   = "sse"  // its predecessor
)

var serverName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// CheckServers returns everything that is wrong with servers. It expands all values once.
func CheckServers(servers []MCPServer, getenv func(string) string) (errs []error) {
	seen := map[string]bool{ServerName: true}
	for _, m := range servers {
		err := m.check()
		if seen[m.Name] {
			err = errors.Join(err, errors.New("its name is taken"))
		}
		seen[m.Name] = true
		_, expandErr := m.Entry(Vars{Thread: "thread", Repo: "owner/name", Run: "run"}, getenv)
		if err = errors.Join(err, expandErr); err != nil {
			errs = append(errs, fmt.Errorf("MCP server %q: %w", m.Name, err))
		}
	}
	return errs
}

func (m MCPServer) check() error {
	stdio, remote := m.Type == ServerStdio, m.Type == ServerHTTP || m.Type == ServerSSE
	// In the working directory a relative path would be the checkout's own program.
	program := filepath.IsAbs(m.Command) || m.Command != "" && m.Command == filepath.Base(m.Command)
	switch {
	case !serverName.MatchString(m.Name):
		return errors.New("its name is not of the form [a-z][a-z0-9-]*")
	case !stdio && !remote:
		return fmt.Errorf("type %q is unknown", m.Type)
	case stdio && (!program || m.URL != "" || len(m.Headers) > 0):
		return errors.New("a server on stdio has a command, which is an absolute path or a bare name, and neither URL nor headers")
	case remote && (m.URL == "" || m.Command != "" || len(m.Args)+len(m.Env) > 0):
		return fmt.Errorf("a server of type %s has a URL, and neither command, arguments nor environment", m.Type)
	}
	for _, p := range m.Profiles {
		if p != Write && p != Read {
			return fmt.Errorf("profile %q cannot have servers", p)
		}
	}
	return nil
}

// Serves reports whether runs of a profile get the server.
func (m MCPServer) Serves(p Profile) bool {
	if len(m.Profiles) == 0 {
		return p == Write
	}
	return slices.Contains(m.Profiles, p)
}

// serverOf returns the name of the server that a tool belongs to; empty for the CLI's own tools.
func serverOf(tool string) string {
	rest, _ := strings.CutPrefix(tool, "mcp__")
	name, _, ok := strings.Cut(rest, "__")
	if !ok || rest == tool {
		return ""
	}
	return name
}

// ServerSecrets returns the values of the environment that servers get, for the redactor. Variables that are not set are left out.
func ServerSecrets(servers []MCPServer, getenv func(string) string) []string {
	var found []string
	_ = CheckServers(servers, func(name string) string {
		value := getenv(name)
		if value != "" {
			found = append(found, value)
		}
		return value
	})
	return found
}

// Vars are the values that describe a run.
type Vars struct{ Thread, Repo, Run string }

// Entry is a server as the CLI reads it from its configuration.
type Entry struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// Entry returns the server's entry for a run. The error names every value that cannot be expanded.
func (m MCPServer) Entry(v Vars, getenv func(string) string) (Entry, error) {
	public := func(string) (string, error) {
		return "", valueError("the arguments of a process are public: put it into env")
	}
	secret := func(name string) (string, error) {
		switch value := getenv(name); {
		case value == "":
			return "", valueError(name + " is not set in the environment")
		case strings.Contains(value, "${"):
			return "", valueError(name + " holds ${, which the CLI would expand again")
		default:
			return value, nil
		}
	}
	var errs []error
	one := func(where, text string, env func(string) (string, error)) string {
		filled, err := fill(where, text, v, env)
		errs = append(errs, err)
		return filled
	}
	all := func(where string, values map[string]string) map[string]string {
		filled := maps.Clone(values)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			filled[key] = one(where+" "+key, values[key], secret)
		}
		return filled
	}
	e := Entry{Type: m.Type, Command: m.Command, URL: m.URL}
	for i, arg := range m.Args {
		e.Args = append(e.Args, one(fmt.Sprintf("argument %d", i+1), arg, public))
	}
	e.Env, e.Headers = all("env", m.Env), all("header", m.Headers)
	return e, errors.Join(errs...)
}

// fill expands one value. Conditions and loops are refused: they could hide a mistake until the first run that reaches it.
func fill(where, text string, v Vars, env func(string) (string, error)) (string, error) {
	t, err := template.New(where).Funcs(template.FuncMap{"env": env}).Parse(text)
	if err != nil {
		return "", err
	}
	for _, n := range t.Root.Nodes {
		if k := n.Type(); k != parse.NodeText && k != parse.NodeAction {
			return "", fmt.Errorf("%s: %s: only values are allowed, such as {{.Repo}}", where, n)
		}
	}
	var b strings.Builder
	err = t.Execute(&b, v)
	if reason, ok := errors.AsType[valueError](err); ok {
		err = fmt.Errorf("%s: %w", where, reason) // without the template's own message
	}
	return b.String(), err
}

// valueError says why a value cannot be expanded.
type valueError string

func (e valueError) Error() string { return string(e) }
