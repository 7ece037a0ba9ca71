package tools

import (
	"errors"
	"fmt"
	"github.com/errand-fleet/errand/agent/internal/session"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// MCPServer is a server of tools outside this process, which the CLI of each run starts or connects to. The agent sees its tools as
// mcp__<name>__<tool>, and calls them without anybody being asked.
//
// In Args, and in the values of Env and Headers, {{.Thread}}, {{.Repo}} and {{.Run}} stand for what the run is about (Spec.Thread,
// Spec.Repo, Spec.ID). In Env and Headers {{env "NAME"}} stands for a variable of the worker's environment; give what ServerSecrets
// finds to the Redactor. The CLI by itself expands ${NAME} from its own environment.
type MCPServer struct {
	Name     string // lower-case letters, digits and dashes
	Type     string // ServerStdio, ServerHTTP or ServerSSE
	Command  string // stdio: an absolute path, or a name to find on PATH; it runs in Spec.Dir
	Args     []string
	Env      map[string]string // stdio: besides the CLI's own environment
	URL      string            // http, sse
	Headers  map[string]string // http, sse
	Profiles []Profile         // of the runs that get it; empty: Write. Never Untrusted
}

// The values of MCPServer.Type.
const (
	ServerStdio = "stdio"
	ServerHTTP  = "http" // streamable HTTP
	ServerSSE   = "sse"  // its predecessor
)

var serverName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

func checkServers(servers []MCPServer, getenv func(string) string) error {
	return errors.Join(CheckServers(servers, getenv)...)
}

// CheckServers finds all that is wrong with servers, for which New would refuse them, by expanding everything once.
func CheckServers(servers []MCPServer, getenv func(string) string) (errs []error) {
	seen := map[string]bool{hostServer: true} // that name is our own
	for _, m := range servers {
		err := m.check()
		if seen[m.Name] {
			err = errors.Join(err, errors.New("its name is taken"))
		}
		seen[m.Name] = true
		_, expandErr := m.expand(serverVars{Thread: "thread", Repo: "owner/name", Run: "run"}, getenv)
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

// serves reports whether runs of a profile get the server.
func (m MCPServer) serves(p Profile) bool {
	if len(m.Profiles) == 0 {
		return p == Write
	}
	return slices.Contains(m.Profiles, p)
}

// servers are the names of the servers whose tools a run may call: that of Spec.Tools, and those configured for its profile.
func (r *Runner) servers(s Spec) (names []string) {
	if len(s.Tools) > 0 {
		names = append(names, hostServer)
	}
	for _, m := range r.cfg.Servers {
		if m.serves(s.Profile) {
			names = append(names, m.Name)
		}
	}
	return names
}

// serverOf is the name of the server that a tool is of; empty for the CLI's own tools.
func serverOf(tool string) string {
	rest, _ := strings.CutPrefix(tool, "mcp__")
	name, _, ok := strings.Cut(rest, "__")
	if !ok || rest == tool {
		return ""
	}
	return name
}

// ServerSecrets are the values of the environment that servers are given, for NewRedactor. What is not set is left out; New refuses it.
func ServerSecrets(servers []MCPServer, getenv func(string) string) []string {
	var found []string
	_ = checkServers(servers, func(name string) string {
		value := getenv(name)
		if value != "" {
			found = append(found, value)
		}
		return value
	})
	return found
}

// mcpArguments tells the CLI which servers there are, by a file for this run alone, since they may hold secrets, and that their tools and
// those of Spec.Tools need nobody's permission.
func (r *Runner) mcpArguments(s Spec, d session.Dirs) ([]string, error) {
	if s.inert {
		return nil, nil
	}
	var args []string
	if path := ownServers(s.Dir); s.trusts() && path != "" {
		args = append(args, "--mcp-config="+path)
	}
	entries := map[string]serverEntry{}
	for _, m := range r.cfg.Servers {
		if !m.serves(s.Profile) {
			continue
		}
		e, err := m.expand(serverVars{Thread: s.Thread, Repo: s.Repo, Run: s.ID}, r.getenv)
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
