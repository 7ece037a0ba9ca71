package config

import (
	"bytes"
	"errors"
	"flag"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	c, err := load(getenv(map[string]string{
		"REDIS_URL": "redis://:pw@h:6379/0", "ANTHROPIC_API_KEY": "k", "ERRAND_RUN_LIMIT": "60m", "ERRAND_MODEL": "a b",
	}), machine(t, nil), RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := c.Print(&got); err != nil {
		t.Fatal(err)
	}
	want := `# Redis: where tasks, claims and sessions live
REDIS_URL=redis://:[redacted]@h:6379/0
# REDIS_PASSWORD=
# ERRAND_REDIS_REPLICAS=0
# ERRAND_ALLOW_OPEN_REDIS=false
# ERRAND_REDIS_CA_FILE=
# ERRAND_REDIS_CERT_FILE=
# ERRAND_REDIS_KEY_FILE=

# Objects: storage for values that are too large for Redis
# ERRAND_OBJECTS=
# AWS_SECRET_ACCESS_KEY=
# AWS_SESSION_TOKEN=

# Slack: optional
# SLACK_BOT_TOKEN=
# SLACK_SIGNING_SECRET=
# SLACK_APP_TOKEN=
# SLACK_API_URL=https://slack.com/api/

# GitHub: optional
# GITHUB_TOKEN=
# GITHUB_APP_ID=
# GITHUB_APP_PRIVATE_KEY=
# GITHUB_WEBHOOK_SECRET=
# GITHUB_POLL=
# GITHUB_API_URL=https://api.github.com/
# GITHUB_URL=https://github.com

# Commits that workers publish
# ERRAND_COMMIT_AUTHOR=
# ERRAND_SIGNING_KEY=

# Model: one credential or cloud is enough; docs/models.md shows each
ANTHROPIC_API_KEY=[redacted]
# ANTHROPIC_AUTH_TOKEN=
# CLAUDE_CODE_OAUTH_TOKEN=
# ANTHROPIC_CUSTOM_HEADERS=
# ERRAND_MODEL_TOKEN_COMMAND=
# ANTHROPIC_BASE_URL=https://api.anthropic.com
# ERRAND_GATEWAY=on
ERRAND_MODEL='a b'
# ANTHROPIC_DEFAULT_OPUS_MODEL=
# ANTHROPIC_DEFAULT_SONNET_MODEL=
# ANTHROPIC_DEFAULT_HAIKU_MODEL=

# Cloud: at most one, instead of a credential above
# CLAUDE_CODE_USE_BEDROCK=false
# AWS_REGION=
# ANTHROPIC_BEDROCK_BASE_URL=
# AWS_BEARER_TOKEN_BEDROCK=
# CLAUDE_CODE_USE_VERTEX=false
# ANTHROPIC_VERTEX_PROJECT_ID=
# CLOUD_ML_REGION=
# ANTHROPIC_VERTEX_BASE_URL=
# CLAUDE_CODE_USE_FOUNDRY=false
# ANTHROPIC_FOUNDRY_RESOURCE=
# ANTHROPIC_FOUNDRY_BASE_URL=
# ANTHROPIC_FOUNDRY_API_KEY=
# AZURE_CLIENT_SECRET=

# HTTP: webhooks, API and console
# ERRAND_HTTP_ADDR=127.0.0.1:8080
# ERRAND_PUBLIC_URL=
# ERRAND_CONSOLE_TOKEN=
# ERRAND_TRUSTED_PROXY_HEADER=
# ERRAND_TRUSTED_PROXY_GROUPS=
# ERRAND_TRUSTED_PROXIES=
# ERRAND_LOGIN_SECRET=
# ERRAND_LINK_DAYS=7

# Fleet: what all processes share
# ERRAND_FLEET_NAME=errand
# ERRAND_METRICS_TOKEN=

# Worker: how it runs tasks
# ERRAND_WORKER_ADDR=127.0.0.1:8081
# ERRAND_WORKER_URL=
# ERRAND_CLAUDE=claude
# ERRAND_SANDBOX=auto
# ERRAND_ALLOW_ROOT=false
# ERRAND_POOL=default
# ERRAND_CONCURRENCY=4
ERRAND_RUN_LIMIT=1h
# ERRAND_IDLE_LIMIT=15m
# ERRAND_RUN_MEMORY_GB=5
# ERRAND_RUN_DISK_GB=20
# ERRAND_RUN_PROCESSES=2000
# ERRAND_LOG_LEVEL=info

# Paths
# ERRAND_CONFIG=errand.yaml
# ERRAND_STATE_DIR=.errand
# ERRAND_DIRS=
# ERRAND_SANDBOX_SHOW=

# Keep: when a worker removes unused files from its disk, oldest first; 0: of any size
# ERRAND_KEEP_LOGS_GB=5
# ERRAND_KEEP_CLONES_GB=50

# Traces: optional
# OTEL_EXPORTER_OTLP_ENDPOINT=
# OTEL_EXPORTER_OTLP_HEADERS=

# No errand.yaml: no repositories, limits or budgets are in force
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("Print (-want +got):\n%s", diff)
	}
}

// A real shell reads what Print wrote; with the secrets put back Load makes the same Config of it.
func TestPrintIsAnEnvFile(t *testing.T) {
	t.Parallel()
	before := loadFull(t)
	file := t.TempDir() + "/printed.env"
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(before.Print(out), out.Close()); err != nil {
		t.Fatal(err)
	}
	env, err := exec.CommandContext(t.Context(), "sh", "-c", `set -eu; set -a; . "$1"; env -0`, "sh", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for line := range strings.SplitSeq(string(env), "\x00") {
		name, value, _ := strings.Cut(line, "=")
		if _, ours := full()[name]; ours {
			vars[name] = value
		}
	}
	for name, value := range vars {
		if strings.Contains(value, redacted) {
			vars[name] = full()[name]
		}
	}
	after, err := load(getenv(vars), machine(t, fullFiles), RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("read again (-before +after):\n%s", diff)
	}
}

var update = flag.Bool("update", false, "write .env.example and docs/settings.md again")

// maxSettings bounds the variables and keys: lower it when one goes. A new one needs somebody who has a reason to set it.
const maxSettings = 201

// .env.example and docs/settings.md are made of the settings: run this test with -update.
func TestReference(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"../.env.example": EnvFile(), "../docs/settings.md": reference()} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	count := len(new(Config).Settings())
	for _, section := range keysOf(reflect.TypeFor[Routing]()) {
		rows := keyRows(section.Type, "")
		count += max(1, len(rows))
		if !strings.HasSuffix(section.Tag.Get("help"), ".") {
			t.Errorf("%s: no sentence explains it", section.Name)
		}
		for _, row := range rows {
			if !strings.HasSuffix(row, ". |\n") {
				t.Errorf("%s: %q has no sentence", section.Name, row)
			}
		}
	}
	if count > maxSettings {
		t.Errorf("%d variables and keys, at most %d", count, maxSettings)
	}
	for _, s := range new(Config).Settings() {
		if !strings.HasSuffix(s.Help, ".") || s.About == "" {
			t.Errorf("%s: %q is no sentence", s.Name, s.Help)
		}
	}
}

// The example is shown to people as what they may write: it has to load.
func TestExampleYAML(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("errand.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var p Problems
	r, _ := parseRouting(&p, "errand.example.yaml", data)
	if err := p.err(); err != nil {
		t.Fatal(err)
	}
	if len(r.Repositories) == 0 || len(r.Channels) == 0 || len(r.People) == 0 || len(r.MCP) == 0 || len(r.Rules) == 0 ||
		r.Limits == (Limits{}) || r.Budgets == (Budgets{}) || len(r.Slack.Approvers) == 0 || r.GitHub.Label == "" ||
		r.Login.Issuer == "" || len(r.Roles) == 0 ||
		len(r.Schedules) == 0 || len(r.Hooks) == 0 || len(r.Webhooks) == 0 || len(r.Credentials) == 0 {
		t.Errorf("the example leaves a section out: %+v", r)
	}
}
