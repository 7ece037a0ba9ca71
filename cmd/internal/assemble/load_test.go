package assemble

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/store"
)

// A key that only looks like one stops the start, so Load refuses it.
func TestLoadTriesTheParts(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(key,
		[]byte("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"ANTHROPIC_API_KEY": "k", "ERRAND_STATE_DIR": t.TempDir(), "GITHUB_APP_ID": "1",
		"GITHUB_APP_PRIVATE_KEY": key, "GITHUB_WEBHOOK_SECRET": "s",
	}
	_, err := Load(func(name string) string { return env[name] }, config.RoleStandalone)
	if err == nil || !strings.Contains(err.Error(), "read the App's key") {
		t.Errorf("it says %v", err)
	}
}

// Every problem of errand.yaml is reported at once, a single time, in the order of the lines, wherever it is.
func TestLoadNamesLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "our errand.yaml")
	text := `repositories:
  acme/web: {}
  acme/api:
    env: {HOME: /root}
    egress: [a b]
rules:
  - {tool: Bash, action: forbid}
  - tool: bsh
    action: deny
registries:
  - {host: a.example, bearer: '{{env "WIRE_UNSET"}}'}
  - {host: b.example, bearer: '{{env "WIRE_UNSET"}}'}
mcp:
  one: {command: ls, url: "https://x.example"}
  two: {command: ls, env: {A: '{{env "WIRE_UNSET"}}'}}
credentials:
  - {name: team, api_key: '{{env "WIRE_UNSET"}}'}
hooks:
  alerts: {template: Look., secret: '{{env "WIRE_UNSET"}}'}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"ERRAND_STATE_DIR": t.TempDir(), "ERRAND_CONFIG": file, "ERRAND_SANDBOX": "none", "ERRAND_ALLOW_ROOT": "true",
	}
	_, err := Load(func(name string) string { return env[name] }, config.RoleStandalone)
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		t.Fatalf("it says %v", err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, strings.TrimPrefix(p.Where, file))
	}
	want := []string{
		":3: repositories.acme/api", ":3: repositories.acme/api", ":7: rules.1.action", ":8: rules.2", ":11: registries.1:",
		":12: registries.2:", ":14: mcp.one", ":15: mcp.two:", ":17: credentials.1:", ":19: hooks.alerts.secret",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places (-want +got):\n%s\n%v", diff, err)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	c := config.Config{}
	list := Notices(c, []string{"ERRAND_RUN_LIMT=1h"})
	if len(list) != 2 || list[0].Severity != store.Note || list[0].What != c.Summary() ||
		list[1].Severity != store.Warning ||
		!strings.Contains(list[1].Remedy, "ERRAND_RUN_LIMIT") {
		t.Errorf("got %+v", list)
	}
	c.Paths.File, c.Routing.Budgets.Day = "errand.yaml", 200
	if list := Notices(c, nil); len(list) != 1 || list[0].Severity != "" || list[0].What != "errand.yaml: budgets" {
		t.Errorf("got %+v", list)
	}
	c.Slack.BotToken, c.GitHub.Token = "xoxb", "ghp"
	if list := Notices(c, nil); len(list) != 2 || list[1].Severity != store.Note ||
		list[1].What != "everybody in Slack has errand's rights on GitHub" {
		t.Errorf("no account is mapped: %+v", list)
	}
	for _, decided := range []config.Routing{
		{People: map[string]config.Person{"ann": {GitHub: "ann"}}},
		{Slack: config.SlackPeople{Unmapped: "all"}},
		{Slack: config.SlackPeople{Unmapped: "refuse"}},
	} {
		c.Routing = decided
		if list := Notices(c, nil); len(list) != 1 {
			t.Errorf("%+v: %+v", decided, list)
		}
	}
}

// A worker reads the secrets of repositories before it starts. A front door runs no commands for them.
func TestLoadReadsSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "errand.yaml")
	text := "repositories:\n  acme/api:\n    secrets:\n      A: command:printf hush-%s a\n      B: {from: env:WIRE_B, expose: agent}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"ANTHROPIC_API_KEY": "k", "ERRAND_STATE_DIR": t.TempDir(), "ERRAND_CONFIG": file, "ERRAND_SANDBOX": "bwrap",
		"ERRAND_ALLOW_ROOT": "true", "WIRE_B": "hush-b",
	}
	c, err := Load(func(name string) string { return env[name] }, config.RoleStandalone)
	if err != nil {
		t.Fatal(err)
	}
	if all, exposed := repositorySecrets(c, false)["acme/api"], repositorySecrets(c, true)["acme/api"]; len(all) != 2 ||
		all["A"] != "hush-a" ||
		len(exposed) != 1 || exposed["B"] != "hush-b" {
		t.Errorf("%v, exposed %v", all, exposed)
	}
	if said := redactor(c).String("hush-a hush-b"); strings.Contains(said, "hush") {
		t.Errorf("the redactor leaves %q", said)
	}
	env["ERRAND_SANDBOX"] = "none"
	if _, err := Load(func(name string) string { return env[name] }, config.RoleStandalone); err == nil ||
		!strings.Contains(err.Error(), "acme/api.secrets.B is exposed to the agent without a sandbox") {
		t.Errorf("without a sandbox: %v", err)
	}
	delete(env, "WIRE_B")
	if _, err := Load(func(name string) string { return env[name] }, config.RoleStandalone); err == nil ||
		!strings.Contains(err.Error(), "read secret B: env:WIRE_B gives no text") {
		t.Errorf("without a value: %v", err)
	}
	delete(env, "ANTHROPIC_API_KEY")
	env["REDIS_URL"], env["ERRAND_CONSOLE_TOKEN"] = "redis://:pw@127.0.0.1:1/0", strings.Repeat("x", 40)
	c, err = Load(func(name string) string { return env[name] }, config.RoleFrontdoor)
	if got := repositorySecrets(c, false)["acme/api"]; err != nil || len(got) != 0 {
		t.Errorf("a front door has %v, %v", got, err)
	}
}
