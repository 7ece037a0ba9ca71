package agent

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/internal/modelfake"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpMain is a server of one tool on stdio, which tells what the server was started with.
func mcpMain() int {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "tell"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Word string }) (*mcp.CallToolResult, any, error) {
		text := strings.Join(append([]string{in.Word, os.Getenv("SERVER_TOKEN")}, os.Args[1:]...), " ")
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// teller is this binary as a server.
func teller(t *testing.T, name string, profiles ...Profile) MCPServer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return MCPServer{
		Name: name, Type: ServerStdio, Command: self, Args: []string{"{{.Thread}}", "{{.Repo}}", "{{.Run}}"},
		Env: map[string]string{"AGENT_TEST_MODE": "mcp", "SERVER_TOKEN": `{{env "TELLER"}}`}, Profiles: profiles,
	}
}

func lookup(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// The server's tool is called without asking; what the server is told passes through a file that is nobody else's and does not stay, and
// its secret into no log.
func TestCLIServer(t *testing.T) {
	t.Parallel()
	model, servers := newModel(t), []MCPServer{teller(t, "teller")}
	model.Answer("", modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "mcp__teller__tell", Input: map[string]string{"Word": "hello"}}}}, modelfake.Turn{Text: "Told."})
	getenv := lookup(map[string]string{"TELLER": "teller-secret"})
	var temp string
	r := newCLI(t, model, func(c *Config) {
		c.Servers, c.Getenv, temp = servers, getenv, c.TempDir
		c.Redactor = NewRedactor(ServerSecrets(servers, getenv)...)
	})
	h := refuse(t)
	var mode fs.FileMode
	h.on = func(e Event) {
		if e.Kind != Started {
			return
		}
		found, _ := filepath.Glob(filepath.Join(temp, "*", "mcp.json"))
		if len(found) != 1 {
			t.Errorf("found %q", found)
			return
		}
		info, err := os.Stat(found[0])
		if err != nil {
			t.Error(err)
			return
		}
		mode = info.Mode()
	}
	res := runCLI(t, r, Spec{
		ID: "server", Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Write, Thread: "chat/1", Repo: "acme/api",
	}, h)
	if res.Outcome != Done || res.Text != "Told." {
		t.Errorf("outcome %s, text %q", res.Outcome, res.Text)
	}
	if diff := cmp.Diff([]string{"false hello teller-secret chat/1 acme/api " + unique("server")}, answered(t, model)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if mode != 0o600 {
		t.Errorf("the file had mode %v", mode)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, ext := range []string{".log", ".ndjson"} {
		log, err := os.ReadFile(r.logPath(unique("server"), ext))
		if err != nil || !strings.Contains(string(log), "hello [redacted]") || strings.Contains(string(log), "teller-secret") {
			t.Errorf("%s, %v: the secret is there, or the answer is not", ext, err)
		}
	}
}

// A run gets the servers of its profile, and runs on a stranger's content get none.
func TestCLIServersByProfile(t *testing.T) {
	t.Parallel()
	for profile, want := range map[Profile][]string{
		Write:     {"mcp__all__tell", "mcp__writers__tell"},
		Read:      {"mcp__all__tell", "mcp__readers__tell"},
		Untrusted: nil,
	} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			model := newModel(t)
			r := newCLI(t, model, func(c *Config) {
				c.Servers = []MCPServer{teller(t, "writers"), teller(t, "readers", Read), teller(t, "all", Read, Write)}
				c.Getenv = lookup(map[string]string{"TELLER": "teller-secret"})
				// The CLI would otherwise hide them from the Write profile until the model searches for them.
				c.Env = map[string]string{"ENABLE_TOOL_SEARCH": "false"}
			})
			runCLI(t, r, Spec{ID: "servers-" + string(profile), Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: profile}, &host{})
			got := slices.DeleteFunc(model.Requests()[0].Tools, func(name string) bool { return !strings.HasPrefix(name, "mcp__") })
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

// A server that is not there, or does not answer, holds up the run for a bounded time, and whoever reads of the run is told, once.
func TestCLIServerMissing(t *testing.T) {
	t.Parallel()
	model := newModel(t)
	r := newCLI(t, model, func(c *Config) {
		c.Servers = []MCPServer{
			{Name: "dead", Type: ServerStdio, Command: "false"},
			{Name: "deaf", Type: ServerStdio, Command: "sleep", Args: []string{"600"}},
			{Name: "nobody", Type: ServerHTTP, URL: "http://127.0.0.1:9/mcp"},
		}
		c.Env = map[string]string{"MCP_TIMEOUT": "1000"}
	})
	// Without these the time is the CLI's own, and at its end a server may be said to be pending for ever.
	for _, v := range []string{"MCP_TIMEOUT=10000", "MCP_CONNECTION_NONBLOCKING=0"} {
		if !slices.Contains(newCLI(t, model).environment(Spec{}, session.Dirs{}, gateway.Access{}), v) {
			t.Errorf("%s is not set", v)
		}
	}
	h := &host{more: []Message{{Text: "again"}}}
	res := runCLI(t, r, Spec{ID: "missing", Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Write}, h)
	if res.Outcome != Done {
		t.Errorf("outcome %s", res.Outcome)
	}
	var told []string
	turn := 1
	for _, e := range h.events {
		switch e.Kind {
		case TurnEnd:
			turn++
		case Notice:
			told = append(told, fmt.Sprintf("turn %d: %s", turn, e.Text))
		}
	}
	slices.Sort(told)
	want := []string{
		"turn 1: The MCP server dead is not available (failed); the agent works without its tools.",
		"turn 1: The MCP server deaf is not available (failed); the agent works without its tools.",
		"turn 1: The MCP server nobody is not available (failed); the agent works without its tools.",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	log, err := os.ReadFile(r.logPath(unique("missing"), ".log"))
	if err != nil || !strings.Contains(string(log), "The MCP server dead is not available") {
		t.Errorf("the log does not say so: %v", err)
	}
}

func TestServersAreChecked(t *testing.T) {
	t.Parallel()
	stdio := func(change func(*MCPServer)) []MCPServer {
		m := MCPServer{Name: "x", Type: ServerStdio, Command: "x"}
		change(&m)
		return []MCPServer{m}
	}
	for want, servers := range map[string][]MCPServer{
		`MCP server "X": its name is not of the form`:              stdio(func(m *MCPServer) { m.Name = "X" }),
		`MCP server "errand": its name is taken`:                   stdio(func(m *MCPServer) { m.Name = "errand" }),
		`MCP server "x": its name is taken`:                        append(stdio(func(*MCPServer) {}), stdio(func(*MCPServer) {})...),
		`type "websocket" is unknown`:                              stdio(func(m *MCPServer) { m.Type = "websocket" }),
		`a server on stdio has a command`:                          stdio(func(m *MCPServer) { m.Command = "./x" }),
		`a server on stdio has a command, which is`:                stdio(func(m *MCPServer) { m.Command = "" }),
		`a server on stdio has a command, which is an`:             stdio(func(m *MCPServer) { m.Headers = map[string]string{"A": "b"} }),
		`a server of type http has a URL`:                          {{Name: "x", Type: ServerHTTP, Command: "x"}},
		`a server of type sse has a URL`:                           {{Name: "x", Type: ServerSSE, URL: "http://h", Args: []string{"a"}}},
		`profile "untrusted" cannot have servers`:                  stdio(func(m *MCPServer) { m.Profiles = []Profile{Read, Untrusted} }),
		`argument 2:1:2: executing "argument 2" at <.Actor>`:       stdio(func(m *MCPServer) { m.Args = []string{"", "{{.Actor}}"} }),
		`argument 1:1: unclosed action`:                            stdio(func(m *MCPServer) { m.Args = []string{"{{.Run"} }),
		`put it into env`:                                          stdio(func(m *MCPServer) { m.Args = []string{`{{env "SET"}}`} }),
		`env T: {{if .Repo}}{{env "UNSET"}}{{end}}: only values`:   stdio(func(m *MCPServer) { m.Env = map[string]string{"T": `{{if .Repo}}{{env "UNSET"}}{{end}}`} }),
		`ODD holds ${, which the CLI would`:                        stdio(func(m *MCPServer) { m.Env = map[string]string{"T": `{{env "ODD"}}`} }),
		`header A: UNSET is not set in the environment`:            {{Name: "x", Type: ServerHTTP, URL: "http://h", Headers: map[string]string{"A": `Bearer {{env "UNSET"}}`}}},
		"UNSET is not set in the environment\ntemplate: env U":     stdio(func(m *MCPServer) { m.Env = map[string]string{"T": `{{env "UNSET"}}`, "U": "{{.X}}"} }), // all at once
		"MCP server \"x\": type \"\" is unknown\nMCP server \"y\"": {{Name: "x"}, {Name: "y"}},
	} {
		_, err := New(Config{LogDir: "x", Servers: servers, Getenv: lookup(map[string]string{"SET": "value", "ODD": "a${HOME}"})})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestServerExpansion(t *testing.T) {
	t.Parallel()
	getenv := lookup(map[string]string{"TOKEN": "{{secret}}"})
	v := serverVars{Thread: "slack/T/C/1.2", Repo: "", Run: "1-slack-x"}
	for name, c := range map[string]struct {
		server MCPServer
		want   serverEntry
	}{
		"stdio": {
			MCPServer{Type: ServerStdio, Command: "srv", Args: []string{"", " ", "--of={{.Thread}}", "{{.Repo}}", "${HOME}"}, Env: map[string]string{"T": `<{{env "TOKEN"}}> {{.Run}}`}},
			serverEntry{Type: "stdio", Command: "srv", Args: []string{"", " ", "--of=slack/T/C/1.2", "", "${HOME}"}, Env: map[string]string{"T": "<{{secret}}> 1-slack-x"}},
		},
		"http": {
			MCPServer{Type: ServerHTTP, URL: "https://h/{{.Run}}", Headers: map[string]string{"Authorization": `Bearer {{env "TOKEN"}}`}},
			serverEntry{Type: "http", URL: "https://h/{{.Run}}", Headers: map[string]string{"Authorization": "Bearer {{secret}}"}},
		},
	} {
		got, err := c.server.expand(v, getenv)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// Also where a variable is missing: that is for New to say, and only where there are runs.
func TestServerSecrets(t *testing.T) {
	t.Parallel()
	servers := []MCPServer{
		{Name: "a", Env: map[string]string{"X": `{{env "ONE"}} {{env "TWO"}}`, "Y": "{{.Run}} plain"}},
		{Name: "b", Headers: map[string]string{"X": `{{env "UNSET"}}`, "Y": `{{env "THREE"}}`}},
	}
	got := ServerSecrets(servers, lookup(map[string]string{"ONE": "1", "TWO": "2", "THREE": "3", "FOUR": "4"}))
	if diff := cmp.Diff([]string{"1", "2", "3"}, got); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}
