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
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpMain is a server of one tool on stdio, which tells what the server was started with.
func mcpMain() int {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "tell"}, func(_ context.Context, _ *mcp.CallToolRequest,
		in struct{ Word string },
	) (*mcp.CallToolResult, any, error) {
		text := strings.Join(append([]string{in.Word, os.Getenv("SERVER_TOKEN")}, os.Args[1:]...), " ")
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (
		*mcp.CallToolResult, any, error,
	) {
		a, ok := r.Params.InputResponses["branch"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"branch": &mcp.ElicitParams{
				Message: "Which branch?", RequestedSchema: map[string]any{
					"type": "object", "properties": map[string]any{"branch": map[string]any{"type": "string"}},
				},
			}}}, nil, nil
		}
		text := fmt.Sprint(a.Action, " ", a.Content["branch"])
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

// The server's tool should be called without approval; its configuration should pass through a private file that is
// removed, and its secret into no log.
func TestCLIServer(t *testing.T) {
	t.Parallel()
	model, servers := newModel(t), []MCPServer{teller(t, "teller")}
	model.Answer("", call("mcp__teller__tell", "Word", "hello"), modelfake.Turn{Text: "Told."})
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
		if info, err := os.Stat(found[0]); err != nil {
			t.Error(err)
		} else {
			mode = info.Mode()
		}
	}
	res := runCLI(t, r, Spec{ID: "server", Profile: Write, Thread: "chat/1", Repo: "acme/api"}, h)
	if res.Outcome != Done || res.Text != "Told." {
		t.Errorf("outcome %s, text %q", res.Outcome, res.Text)
	}
	if diff := cmp.Diff([]string{"false hello teller-secret chat/1 acme/api " + unique("server")},
		answered(t, model)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if mode != 0o600 {
		t.Errorf("the file had mode %v", mode)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, ext := range []string{".log", ".ndjson"} {
		if log := r.read(t, "server", ext); !strings.Contains(log, "hello [redacted]") || strings.Contains(log, "teller-secret") {
			t.Errorf("%s: the secret is there, or the answer is not", ext)
		}
	}
}

// tellers configures servers for several profiles.
func tellers(t *testing.T) func(*Config) {
	return func(c *Config) {
		c.Servers = []MCPServer{teller(t, "writers"), teller(t, "readers", Read), teller(t, "all", Read, Write)}
		c.Getenv = lookup(map[string]string{"TELLER": "teller-secret"})
	}
}

// offersServers compares the tools of servers that the model's first request offers.
func offersServers(t *testing.T, model *modelfake.Server, want []string) {
	t.Helper()
	got := slices.DeleteFunc(model.Requests()[0].Tools, func(name string) bool {
		return !strings.HasPrefix(name, "mcp__")
	})
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// A run gets the servers of its profile: TestCLIReadsOnly has the others.
func TestCLIServersByProfile(t *testing.T) {
	t.Parallel()
	model := newModel(t)
	// The CLI would otherwise hide them from the Write profile until the model searches for them.
	r := newCLI(t, model, tellers(t), func(c *Config) { c.Env = map[string]string{"ENABLE_TOOL_SEARCH": "false"} })
	runCLI(t, r, Spec{ID: "servers-write", Profile: Write}, &host{})
	offersServers(t, model, []string{"mcp__all__ask", "mcp__all__tell", "mcp__writers__ask", "mcp__writers__tell"})
}

// A server that is missing or does not answer should delay the run only for a bounded time, with one notice.
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
	// Without these the CLI's timeout applies, after which a server may stay pending.
	for _, v := range []string{"MCP_TIMEOUT=10000", "MCP_CONNECTION_NONBLOCKING=0"} {
		if !slices.Contains(newCLI(t, model).environment(Spec{}, session.Dirs{}, gateway.Access{}), v) {
			t.Errorf("%s is not set", v)
		}
	}
	h := &host{more: []Message{{Text: "again"}}}
	res := runCLI(t, r, Spec{ID: "missing", Profile: Write}, h)
	if res.Outcome != Done {
		t.Errorf("outcome %s", res.Outcome)
	}
	var told []string // not again in the second turn
	for _, e := range h.events {
		if e.Kind == Notice {
			told = append(told, e.Text)
		}
	}
	slices.Sort(told)
	want := []string{
		"The MCP server dead is not available (failed); the agent works without its tools.",
		"The MCP server deaf is not available (failed); the agent works without its tools.",
		"The MCP server nobody is not available (failed); the agent works without its tools.",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	if log := r.read(t, "missing", ".log"); !strings.Contains(log, "The MCP server dead is not available") {
		t.Error("the log does not say so")
	}
}

// A question of a server goes to the host, and its answer to the server.
func TestCLIServerAsks(t *testing.T) {
	t.Parallel()
	model := newModel(t, call("mcp__teller__ask"), call("mcp__teller__ask"), modelfake.Turn{Text: "Asked."})
	r := newCLI(t, model, func(c *Config) {
		c.Servers, c.Getenv = []MCPServer{teller(t, "teller")}, lookup(map[string]string{"TELLER": "x"})
	})
	decisions := []Decision{{Allow: true, Input: []byte(`{"branch":"main"}`)}, {}}
	h := &host{permit: func(r ToolRequest) (d Decision) {
		if f := r.Form; !r.Human || r.Tool != "mcp__teller" || f == nil || f.Message != "Which branch?" ||
			!slices.Equal(f.Fields, []string{"branch"}) || !strings.Contains(string(f.Schema), "string") {
			t.Errorf("request %+v", r)
		}
		d, decisions = decisions[0], decisions[1:]
		return d
	}}
	res := runCLI(t, r, Spec{ID: "server-asks", Profile: Write}, h)
	if got := h.results(); res.Outcome != Done || !slices.Equal(got, []string{"accept main", "decline <nil>"}) {
		t.Errorf("results %q, %+v", got, res)
	}
}
