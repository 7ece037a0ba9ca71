package assemble

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
)

// load reads a configuration with an errand.yaml.
func load(t *testing.T, text string) config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "errand.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"REDIS_URL": "redis://127.0.0.1:1/0", "ANTHROPIC_API_KEY": "k", "ERRAND_CONFIG": file,
		"ERRAND_STATE_DIR": t.TempDir(),
	}
	c, err := config.Load(func(name string) string { return env[name] }, config.RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServers(t *testing.T) {
	t.Parallel()
	got := servers(load(t, `mcp:
  tickets: {command: x, args: [a], env: {B: c}}
  search: {url: "https://h", headers: {D: e}, profiles: [read, write]}
  old: {url: "https://h/sse"}
  older: {url: "https://h/events", type: sse}
`))
	want := []agent.MCPServer{
		{Name: "old", Type: agent.ServerSSE, URL: "https://h/sse"},
		{Name: "older", Type: agent.ServerSSE, URL: "https://h/events"},
		{
			Name: "search", Type: agent.ServerHTTP, URL: "https://h", Headers: map[string]string{"D": "e"},
			Profiles: []agent.Profile{agent.Read, agent.Write},
		},
		{Name: "tickets", Type: agent.ServerStdio, Command: "x", Args: []string{"a"}, Env: map[string]string{"B": "c"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

// A secret of a server is one of errand's from the start, and one that is missing keeps the worker from starting.
func TestServerSecrets(t *testing.T) {
	t.Setenv("WIRE_TEST_TOKEN", "hush-tickets")
	c := load(t, `mcp:
  tickets: {command: x, env: {TOKEN: '{{env "WIRE_TEST_TOKEN"}}'}}
  search: {url: "https://h", headers: {Authorization: 'Bearer {{env "WIRE_TEST_MISSING"}}'}}
`)
	var out bytes.Buffer
	log := Logger(&out, c)
	log.Info("test", "value", "it is hush-tickets")
	if got := out.String(); strings.Contains(got, "hush") || !strings.Contains(got, "redacted") {
		t.Errorf("logged: %s", got)
	}
	p, err := New(c, log, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := p.Redactor.String("hush-tickets"); strings.Contains(got, "hush") {
		t.Errorf("redacted: %s", got)
	}
	if _, err := p.Worker("test", "", Options{}); err == nil ||
		!strings.Contains(err.Error(), `MCP server "search": header Authorization: WIRE_TEST_MISSING is not set`) {
		t.Errorf("the worker: %v", err)
	}
}

// The credential of a registry is one of errand's secrets, in the form in which requests have it too.
func TestRegistrySecrets(t *testing.T) {
	t.Setenv("WIRE_TEST_LOGIN", "robot:hush-registry")
	c := load(t, `mcp:
registries:
  - {host: npm.example, basic: '{{env "WIRE_TEST_LOGIN"}}', repositories: [acme/*], paths: [/npm]}
  - {host: go.example, bearer: '{{env "WIRE_TEST_MISSING"}}'}
`)
	want := agent.Registry{
		Host: "npm.example", Basic: `{{env "WIRE_TEST_LOGIN"}}`, Repositories: []string{"acme/*"},
		Paths: []string{"/npm"},
	}
	if diff := cmp.Diff(want, registries(c)[0]); diff != "" {
		t.Errorf("registries (-want +got):\n%s", diff)
	}
	p, err := New(c, Logger(io.Discard, c), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, secret := range []string{"hush-registry", "cm9ib3Q6aHVzaC1yZWdpc3RyeQ=="} {
		if got := p.Redactor.String("it is " + secret); strings.Contains(got, secret) {
			t.Errorf("redacted: %s", got)
		}
	}
	if _, err := p.Worker("test", "", Options{}); err == nil ||
		!strings.Contains(err.Error(), `registry "go.example": credential: WIRE_TEST_MISSING is not set`) {
		t.Errorf("the worker: %v", err)
	}
}
