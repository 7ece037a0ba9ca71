package config

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// machine is a file system for load: an 8 GB machine and whatever a test adds by absolute path or by the path as it is
// in the working directory of the test.
func machine(t *testing.T, files map[string]string) readFunc {
	t.Helper()
	all := map[string]string{"/proc/meminfo": "MemTotal:        8000000 kB\nMemFree:         1000 kB\n"}
	for name, text := range files {
		all[abs(t, name)] = text
	}
	return func(name string) ([]byte, error) {
		text, ok := all[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
}

func abs(t *testing.T, name string) string {
	t.Helper()
	var p Problems
	full := absolute(&p, "test", name)
	if len(p) > 0 {
		t.Fatal(p)
	}
	return full
}

func getenv(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// testKey has the form of a private key and nothing secret in it.
var testKey = string(pem.EncodeToMemory(&pem.Block{
	Type: "RSA PRIVATE KEY", Bytes: []byte(strings.Repeat("a private key of the app ", 6)),
}))

// redisCert and redisKey are a certificate that signs itself, and its key.
var redisCert, redisKey = func() (string, string) {
	public, private, _ := ed25519.GenerateKey(nil)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	cert, _ := x509.CreateCertificate(rand.Reader, form, form, public, private)
	key, _ := x509.MarshalPKCS8PrivateKey(private)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}()

// full sets every variable, to something else than its default where it has one. Every secret's value contains hush.
func full() map[string]string {
	return map[string]string{
		"REDIS_URL":                    "rediss://:hush-redis%21@redis.example:6380/3",
		"ERRAND_REDIS_CA_FILE":         "/keys/ca.pem",
		"ERRAND_REDIS_CERT_FILE":       "/keys/cert.pem",
		"REDIS_PASSWORD":               "hush-compose",
		"ERRAND_REDIS_KEY_FILE":        "/keys/key.pem",
		"ANTHROPIC_DEFAULT_OPUS_MODEL": "o", "ANTHROPIC_DEFAULT_SONNET_MODEL": "s",
		"ANTHROPIC_DEFAULT_HAIKU_MODEL": "h",
		"AWS_REGION":                    "eu-west-1", "ANTHROPIC_BEDROCK_BASE_URL": "https://bedrock.example",
		"AWS_BEARER_TOKEN_BEDROCK":    "hush-bedrock",
		"ANTHROPIC_VERTEX_PROJECT_ID": "acme", "CLOUD_ML_REGION": "global",
		"ANTHROPIC_VERTEX_BASE_URL":  "https://vertex.example/v1",
		"ANTHROPIC_FOUNDRY_RESOURCE": "acme", "ANTHROPIC_FOUNDRY_BASE_URL": "https://foundry.example",
		"ANTHROPIC_FOUNDRY_API_KEY": "hush-foundry",
		"CLAUDE_CODE_USE_BEDROCK":   "false", "CLAUDE_CODE_USE_VERTEX": "false", "CLAUDE_CODE_USE_FOUNDRY": "false",
		"AZURE_CLIENT_SECRET": "hush-azure", "SLACK_BOT_TOKEN": "xoxb-hush",
		"SLACK_SIGNING_SECRET":        "hush-signing",
		"SLACK_APP_TOKEN":             "xapp-hush",
		"SLACK_API_URL":               "https://slack.example/api",
		"GITHUB_APP_ID":               "4711",
		"GITHUB_APP_PRIVATE_KEY":      "/keys/app.pem",
		"GITHUB_WEBHOOK_SECRET":       "hush-webhook",
		"GITHUB_POLL":                 "45s",
		"ERRAND_COMMIT_AUTHOR":        "bot <7+bot@users.noreply.github.com>",
		"ERRAND_SIGNING_KEY":          "/keys/sign",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.example:4318/",
		"OTEL_EXPORTER_OTLP_HEADERS":  "authorization=Basic%20hush-otlp",

		"GITHUB_API_URL":              "https://ghe.example/api/v3",
		"GITHUB_URL":                  "HTTPS://GHE.example/",
		"ANTHROPIC_API_KEY":           "sk-hush",
		"ANTHROPIC_AUTH_TOKEN":        "hush-auth",
		"CLAUDE_CODE_OAUTH_TOKEN":     "hush-oauth",
		"ANTHROPIC_BASE_URL":          "http://127.0.0.1:9999/v/",
		"ANTHROPIC_CUSTOM_HEADERS":    "X-Virtual-Key: hush-team",
		"ERRAND_MODEL_TOKEN_COMMAND":  "vault read token",
		"ERRAND_GATEWAY":              "on", // off has no token command
		"ERRAND_MODEL":                "it's a \"model\" for $5",
		"ERRAND_HTTP_ADDR":            ":0",
		"ERRAND_PUBLIC_URL":           "https://errand.example/",
		"ERRAND_TRUSTED_PROXY_HEADER": "X-Forwarded-User",
		"ERRAND_TRUSTED_PROXY_GROUPS": "X-Forwarded-Groups",
		"ERRAND_LOGIN_SECRET":         "hush-login",
		"ERRAND_LINK_DAYS":            "3",
		"ERRAND_TRUSTED_PROXIES":      "192.0.2.7, 2001:db8::/64,",
		"ERRAND_CONSOLE_TOKEN":        "hush-console-0123",
		"ERRAND_FLEET_NAME":           "staging",
		"ERRAND_METRICS_TOKEN":        "hush-metrics-0123",
		"ERRAND_WORKER_ADDR":          "[::1]:9090",
		"ERRAND_WORKER_URL":           "http://w1.example:9090/",
		"ERRAND_CLAUDE":               "/opt/cli/claude",
		"ERRAND_SANDBOX":              "none",
		"ERRAND_ALLOW_ROOT":           "true",
		"ERRAND_ALLOW_OPEN_REDIS":     "1",
		"ERRAND_REDIS_REPLICAS":       "1",
		"ERRAND_OBJECTS":              "s3://fleet/errand?region=eu-central-1",
		"AWS_SECRET_ACCESS_KEY":       "hush-aws",
		"AWS_SESSION_TOKEN":           "hush-aws-session",
		"ERRAND_SANDBOX_SHOW":         "/home/e/go:",
		"ERRAND_CONCURRENCY":          "7",
		"ERRAND_POOL":                 "gpu",
		"ERRAND_RUN_LIMIT":            "90m",
		"ERRAND_IDLE_LIMIT":           "10m30s",
		"ERRAND_RUN_MEMORY_GB":        "4",
		"ERRAND_RUN_DISK_GB":          "5",
		"ERRAND_RUN_PROCESSES":        "300",
		"ERRAND_LOG_LEVEL":            "debug",
		"ERRAND_CONFIG":               "/etc/errand.yaml",
		"ERRAND_STATE_DIR":            "/var/lib/errand",
		"ERRAND_DIRS":                 "/srv/a b:/srv/c/../d:",
		"ERRAND_KEEP_LOGS_GB":         "7",
		"ERRAND_KEEP_CLONES_GB":       "70",
	}
}

var fullFiles = map[string]string{
	"/keys/app.pem": testKey, "/etc/errand.yaml": "people: {ann: {slack: U1}}\nrepositories: {acme/api: {}}",
	"/keys/sign": testKey, "/keys/ca.pem": redisCert, "/keys/cert.pem": redisCert, "/keys/key.pem": redisKey,
}

func loadFull(t *testing.T) Config {
	t.Helper()
	c, err := load(getenv(full()), machine(t, fullFiles), RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLoadReadsEveryVariable(t *testing.T) {
	t.Parallel()
	got := loadFull(t)
	want := Config{
		Redis: Redis{
			Password: "hush-compose", URL: "rediss://:hush-redis%21@redis.example:6380/3",
			Replicas: 1, AllowOpen: true,
			CAFile: "/keys/ca.pem", CertFile: "/keys/cert.pem", KeyFile: "/keys/key.pem", CA: redisCert,
			Cert: redisCert, Key: Secret(redisKey),
		},
		Objects: Objects{
			URL: "s3://fleet/errand?region=eu-central-1", SecretKey: "hush-aws", Token: "hush-aws-session",
		},
		Slack: Slack{
			BotToken: "xoxb-hush", SigningSecret: "hush-signing", AppToken: "xapp-hush",
			APIURL: "https://slack.example/api/",
		},
		GitHub: GitHub{
			AppID: 4711, AppKeyFile: "/keys/app.pem", AppKey: Secret(strings.TrimSpace(testKey)), WebhookSecret: "hush-webhook",
			Poll:   45e9,
			APIURL: "https://ghe.example/api/v3/", URL: "https://ghe.example",
		},
		Commits: Commits{Author: "bot <7+bot@users.noreply.github.com>", KeyFile: "/keys/sign", Key: Secret(strings.TrimSpace(testKey))},
		Model: Model{
			AuthToken: "hush-auth", APIKey: "sk-hush", OAuthToken: "hush-oauth",
			Headers: "X-Virtual-Key: hush-team", TokenCommand: "vault read token",
			BaseURL: "http://127.0.0.1:9999/v", Gateway: GatewayOn,
			Name: "it's a \"model\" for $5", Opus: "o", Sonnet: "s", Haiku: "h",
		},
		Cloud: Cloud{
			Region: "eu-west-1", BedrockURL: "https://bedrock.example", BedrockKey: "hush-bedrock",
			VertexProject: "acme", VertexRegion: "global", VertexURL: "https://vertex.example/v1",
			FoundryResource: "acme", FoundryURL: "https://foundry.example", FoundryKey: "hush-foundry",
			AzureSecret: "hush-azure",
		},
		HTTP: HTTP{
			Addr: ":0", PublicURL: "https://errand.example", ConsoleToken: "hush-console-0123",
			ProxyHeader: "X-Forwarded-User", Proxies: Networks{
				netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("2001:db8::/64"),
			},
			ProxyGroups: "X-Forwarded-Groups", LoginSecret: "hush-login", LinkDays: 3,
		},
		Fleet: Fleet{Name: "staging", MetricsToken: "hush-metrics-0123"},
		Worker: Worker{
			Addr: "[::1]:9090", URL: "http://w1.example:9090", Claude: "/opt/cli/claude",
			Sandbox: SandboxNone, AllowRoot: true, Pool: "gpu", Concurrency: 7,
			RunLimit: 5400e9, IdleLimit: 630e9, MemoryGB: 4, DiskGB: 5, Processes: 300, LogLevel: -4,
		},
		Keep: Keep{LogsGB: 7, ClonesGB: 70},
		Paths: Paths{
			File: "/etc/errand.yaml", State: "/var/lib/errand", Dirs: []string{"/srv/a b", "/srv/d"},
			Shown: []string{"/home/e/go"},
		},
		Traces: Traces{
			Endpoint: "http://collector.example:4318",
			Headers:  "authorization=Basic%20hush-otlp",
		},
		Routing: Routing{
			People: map[string]Person{"ann": {Slack: "U1"}}, Repositories: map[string]Repository{"acme/api": {}},
		},
		Given: got.Given, Document: got.Document,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
	// GITHUB_TOKEN cannot be set together with the App.
	if len(got.Given) != len(full()) || len(got.settings()) != len(full())+1 {
		t.Errorf("%d of %d variables were set, and %d are known: the test must set every one but GITHUB_TOKEN",
			len(got.Given), len(full()), len(got.settings()))
	}
}

func TestLoadDefaults(t *testing.T) {
	t.Parallel()
	got, err := load(getenv(map[string]string{"ANTHROPIC_API_KEY": "k"}), machine(t, nil), RoleStandalone)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Slack:  Slack{APIURL: "https://slack.com/api/"},
		GitHub: GitHub{APIURL: "https://api.github.com/", URL: "https://github.com"},
		Model:  Model{APIKey: "k", BaseURL: "https://api.anthropic.com", Gateway: GatewayOn},
		HTTP:   HTTP{Addr: "127.0.0.1:8080", LinkDays: 7},
		Worker: Worker{
			Addr: "127.0.0.1:8081", Claude: "claude", Sandbox: SandboxAuto, Pool: "default",
			Concurrency: 4, RunLimit: 7200e9, IdleLimit: 900e9, MemoryGB: 5, DiskGB: 20, Processes: 2000,
		},
		Keep:  Keep{LogsGB: 5, ClonesGB: 50},
		Fleet: Fleet{Name: "errand"},
		Paths: Paths{State: abs(t, ".errand")},
		Given: []string{"ANTHROPIC_API_KEY"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
	if got.Slack.Enabled() || got.GitHub.Enabled() {
		t.Error("a source is enabled though none is configured")
	}
}

func TestEnabledSources(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vars          map[string]string
		slack, github bool
	}{
		"slack":           {map[string]string{"SLACK_BOT_TOKEN": "b", "SLACK_SIGNING_SECRET": "s"}, true, false},
		"slack by socket": {map[string]string{"SLACK_BOT_TOKEN": "b", "SLACK_APP_TOKEN": "a"}, true, false},
		"github by token": {map[string]string{"GITHUB_TOKEN": "t", "GITHUB_WEBHOOK_SECRET": "w"}, false, true},
		"github by app": {map[string]string{
			"GITHUB_APP_ID": "1", "GITHUB_APP_PRIVATE_KEY": "/keys/app.pem", "GITHUB_WEBHOOK_SECRET": "w",
		}, false, true},
		"github by app's key in one line": {map[string]string{
			"GITHUB_APP_ID": "1", "GITHUB_APP_PRIVATE_KEY": strings.ReplaceAll(testKey, "\n", `\n`),
			"GITHUB_WEBHOOK_SECRET": "w",
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.vars["REDIS_URL"] = "redis://localhost"
			tc.vars["ERRAND_CONSOLE_TOKEN"] = "console-token-0123"
			c, err := load(getenv(tc.vars), machine(t, fullFiles), RoleFrontdoor)
			if err != nil {
				t.Fatal(err)
			}
			if c.Slack.Enabled() != tc.slack || c.GitHub.Enabled() != tc.github {
				t.Errorf("Slack %v, GitHub %v, want %v and %v", c.Slack.Enabled(), c.GitHub.Enabled(),
					tc.slack, tc.github)
			}
		})
	}
}

// A worker receives no events, so it has the sources without the secrets that verify them and without polling, and does
// not differ in its digest from one that has them.
func TestWorkerNeedsNoSigningSecrets(t *testing.T) {
	t.Parallel()
	vars := map[string]string{
		"REDIS_URL": "redis://r", "ANTHROPIC_API_KEY": "k", "SLACK_BOT_TOKEN": "b", "GITHUB_TOKEN": "t",
	}
	bare, err := load(getenv(vars), machine(t, fullFiles), RoleWorker)
	if err != nil || !bare.Slack.Enabled() || !bare.GitHub.Enabled() {
		t.Errorf("Slack %v, GitHub %v: %v", bare.Slack.Enabled(), bare.GitHub.Enabled(), err)
	}
	for _, name := range []string{"SLACK_SIGNING_SECRET", "GITHUB_WEBHOOK_SECRET"} {
		vars[name] = "s"
	}
	vars["SLACK_APP_TOKEN"], vars["GITHUB_POLL"] = "xapp-1", "20s"
	full, err := load(getenv(vars), machine(t, fullFiles), RoleWorker)
	if err != nil || !full.Slack.Enabled() || !full.GitHub.Enabled() {
		t.Errorf("with secrets: Slack %v, GitHub %v: %v", full.Slack.Enabled(), full.GitHub.Enabled(), err)
	}
	if full.Digest() != bare.Digest() {
		t.Error("the digests differ")
	}
}

// The default errand.yaml may exist for another user only.
func TestConfigFileOfAnotherUser(t *testing.T) {
	t.Parallel()
	read := machine(t, nil)
	vars := map[string]string{"REDIS_URL": "redis://r", "ANTHROPIC_API_KEY": "k"}
	_, err := load(getenv(vars), func(name string) ([]byte, error) {
		if name == abs(t, "errand.yaml") {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
		return read(name)
	}, RoleWorker)
	const want = "ERRAND_CONFIG is errand.yaml, which cannot be read (permission denied); " +
		"permit the user of this process to read it"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("it says %v", err)
	}
}

func TestConfigFileOfTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"ANTHROPIC_API_KEY": "k"}
	c, err := load(getenv(vars), machine(t, map[string]string{"errand.yaml": "repositories: {o/r: {trusted: true}}"}),
		RoleStandalone)
	if err != nil {
		t.Fatal(err)
	}
	if repo, ok := c.Routing.Repository("O/R"); !ok || !repo.Trusted || c.Paths.File != abs(t, "errand.yaml") {
		t.Errorf("errand.yaml of the working directory was not read: %+v", c)
	}
}

// Load itself differs from load only in that it reads real files.
func TestLoadReadsRealFiles(t *testing.T) {
	t.Parallel()
	missing := t.TempDir() + "/errand.yaml"
	_, err := Load(getenv(map[string]string{"ANTHROPIC_API_KEY": "k", "ERRAND_CONFIG": missing}), RoleStandalone)
	ps, ok := errors.AsType[Problems](err)
	if !ok || len(ps) != 1 || ps[0].Where != "ERRAND_CONFIG" || !strings.Contains(ps[0].What, missing) {
		t.Errorf("Load = %v, want one problem that names %s", err, missing)
	}
}
