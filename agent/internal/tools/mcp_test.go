package tools

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lookup(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestServersAreChecked(t *testing.T) {
	t.Parallel()
	stdio := func(change func(*MCPServer)) []MCPServer {
		m := MCPServer{Name: "x", Type: ServerStdio, Command: "x"}
		change(&m)
		return []MCPServer{m}
	}
	for want, servers := range map[string][]MCPServer{
		`MCP server "X": its name is not of the form`: stdio(func(m *MCPServer) { m.Name = "X" }),
		`MCP server "errand": its name is taken`:      stdio(func(m *MCPServer) { m.Name = "errand" }),
		`MCP server "x": its name is taken`: append(stdio(func(*MCPServer) {}),
			stdio(func(*MCPServer) {})...),
		`type "websocket" is unknown`:               stdio(func(m *MCPServer) { m.Type = "websocket" }),
		`a server on stdio has a command`:           stdio(func(m *MCPServer) { m.Command = "./x" }),
		`a server on stdio has a command, which is`: stdio(func(m *MCPServer) { m.Command = "" }),
		`a server on stdio has a command, which is an`: stdio(func(m *MCPServer) {
			m.Headers = map[string]string{"A": "b"}
		}),
		`a server of type http has a URL`: {{Name: "x", Type: ServerHTTP, Command: "x"}},
		`a server of type sse has a URL`: {{
			Name: "x", Type: ServerSSE, URL: "http://h", Args: []string{"a"},
		}},
		`profile "untrusted" cannot have servers`: stdio(func(m *MCPServer) {
			m.Profiles = []Profile{Read, Untrusted}
		}),
		`argument 2:1:2: executing "argument 2" at <.Actor>`: stdio(func(m *MCPServer) {
			m.Args = []string{"", "{{.Actor}}"}
		}),
		`argument 1:1: unclosed action`: stdio(func(m *MCPServer) {
			m.Args = []string{"{{.Run"}
		}),
		`put it into env`: stdio(func(m *MCPServer) { m.Args = []string{`{{env "SET"}}`} }),
		`env T: {{if .Repo}}{{env "UNSET"}}{{end}}: only values`: stdio(func(m *MCPServer) {
			m.Env = map[string]string{"T": `{{if .Repo}}{{env "UNSET"}}{{end}}`}
		}),
		`ODD holds ${, which the CLI would`: stdio(func(m *MCPServer) {
			m.Env = map[string]string{"T": `{{env "ODD"}}`}
		}),
		`header A: UNSET is not set in the environment`: {{
			Name: "x", Type: ServerHTTP, URL: "http://h", Headers: map[string]string{"A": `Bearer {{env "UNSET"}}`},
		}},
		// all at once
		"UNSET is not set in the environment\ntemplate: env U": stdio(func(m *MCPServer) {
			m.Env = map[string]string{"T": `{{env "UNSET"}}`, "U": "{{.X}}"}
		}),
		"MCP server \"x\": type \"\" is unknown\nMCP server \"y\"": {{Name: "x"}, {Name: "y"}},
	} {
		err := errors.Join(CheckServers(servers, lookup(map[string]string{"SET": "value", "ODD": "a${HOME}"}))...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestServerExpansion(t *testing.T) {
	t.Parallel()
	getenv := lookup(map[string]string{"TOKEN": "{{secret}}"})
	v := Vars{Thread: "slack/T/C/1.2", Repo: "", Run: "1-slack-x"}
	for name, c := range map[string]struct {
		server MCPServer
		want   Entry
	}{
		"stdio": {
			MCPServer{Type: ServerStdio, Command: "srv", Args: []string{
				"", " ", "--of={{.Thread}}", "{{.Repo}}", "${HOME}",
			}, Env: map[string]string{"T": `<{{env "TOKEN"}}> {{.Run}}`}},
			Entry{
				Type: "stdio", Command: "srv", Args: []string{"", " ", "--of=slack/T/C/1.2", "", "${HOME}"},
				Env: map[string]string{"T": "<{{secret}}> 1-slack-x"},
			},
		},
		"http": {
			MCPServer{
				Type: ServerHTTP, URL: "https://h/{{.Run}}",
				Headers: map[string]string{"Authorization": `Bearer {{env "TOKEN"}}`},
			},
			Entry{
				Type: "http", URL: "https://h/{{.Run}}",
				Headers: map[string]string{"Authorization": "Bearer {{secret}}"},
			},
		},
	} {
		got, err := c.server.Entry(v, getenv)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// A variable that is not set is skipped: CheckServers reports it.
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

// A variable that was set from a file may end with the file's line end.
func TestValueEndsWithoutALineEnd(t *testing.T) {
	t.Parallel()
	got, err := Secret("token", `Bearer {{env "TOKEN"}}`, func(string) string { return "secret-text\n" })
	if err != nil || got != "Bearer secret-text" {
		t.Errorf("%q, %v", got, err)
	}
}
