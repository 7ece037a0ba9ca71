package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := load(getenv(map[string]string{
		"REDIS_URL":                   "localhost:6379",
		"SLACK_SIGNING_SECRET":        "s",
		"SLACK_API_URL":               "slack.com",
		"GITHUB_APP_ID":               "Iv1.abc",
		"GITHUB_APP_PRIVATE_KEY_FILE": "/keys/none.pem",
		"ERRAND_CONCURRENCY":          "many",
		"ERRAND_RUN_LIMIT":            "7200",
		"ERRAND_GRACE":                "45s",
		"ERRAND_SANDBOX":              "docker",
		"ERRAND_LOG_LEVEL":            "loud",
		"ERRAND_DIRS":                 "src:/ok",
		"ERRAND_CONFIG":               "/etc/errand.yaml",
	}), machine(t, map[string]string{"/etc/errand.yaml": "channel: {}\npeople: {ann: {}}"}), RoleWorker)
	want := strings.TrimSpace(`
configuration: 15 problems
  - GITHUB_APP_ID is "Iv1.abc", which is not a whole number; write digits only, like 4
  - ERRAND_CONCURRENCY is "many", which is not a whole number; write digits only, like 4
  - ERRAND_RUN_LIMIT is "7200", a number without a unit; write 7200s for seconds or 7200m for minutes
  - ERRAND_LOG_LEVEL is "loud", which is not a level; write debug, info, warn or error
  - GITHUB_APP_PRIVATE_KEY_FILE cannot be read (file does not exist); correct the path, or let the user errand runs as read the file
  - /etc/errand.yaml:1: knows no key "channel"; remove it or correct its spelling; the keys here are repositories, channels, people, mcp, rules, options, limits, budgets, slack, github
  - /etc/errand.yaml:2: people.ann is nobody; add ` + "`slack: U…` and `github: login`" + `
  - REDIS_URL is not the URL of a Redis; write redis://:PASSWORD@HOST:6379/0 (rediss:// for TLS), with special characters of the password percent-encoded
  - SLACK_API_URL is not an absolute http or https URL; write only scheme, host and path, like https://ghe.example.com/api/v3
  - ERRAND_SANDBOX is "docker"; write auto, bwrap or none
  - ERRAND_GRACE is 45s, and a stop would not fit into the 45s a worker has to drain, 10s of them to pack what is left; write a duration above 0 and at most 35s, like 15s
  - ERRAND_DIRS holds "src", which is not absolute; write absolute paths, separated by colons
  - SLACK_BOT_TOKEN is not set although Slack is configured; set it to the bot token (xoxb-…), or unset all other SLACK_ variables to do without Slack
  - GITHUB_WEBHOOK_SECRET is not set although GitHub is configured; set it to the secret of the webhook (any long random string, the same on both sides), or unset the other GITHUB_ credentials to do without GitHub
  - ANTHROPIC_API_KEY is not set; set it, or ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN; without one no run can reach the model`)
	if err == nil {
		t.Fatal("Load took it all")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// Each row changes an environment that is fine by itself and expects exactly one problem, or none where want is empty.
func TestOneProblem(t *testing.T) {
	t.Parallel()
	const url = "is not the URL of a Redis"
	for _, tc := range []struct {
		role        Role
		name, value string
		want        string // how the only problem begins
	}{
		{RoleWorker, "REDIS_URL", "", "REDIS_URL is not set"},
		{RoleFrontdoor, "REDIS_URL", "", "REDIS_URL is not set"},
		{RoleStandalone, "REDIS_URL", "", ""},
		{RoleClient, "REDIS_URL", "", ""},
		{RoleWorker, "REDIS_URL", "rediss://u:p@h", ""},
		{RoleWorker, "REDIS_URL", "unix://:p@/run/redis.sock?db=2", ""},
		{RoleWorker, "REDIS_URL", "redis://p@h:6379", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis:p", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis://h/zero", "REDIS_URL " + url},
		{RoleClient, "REDIS_URL", "http://h", "REDIS_URL " + url},
		{RoleFrontdoor, "ERRAND_CONSOLE_TOKEN", "", "ERRAND_CONSOLE_TOKEN is not set"},
		{RoleWorker, "ERRAND_CONSOLE_TOKEN", "", ""},
		{RoleStandalone, "ERRAND_CONSOLE_TOKEN", "", ""},
		{RoleStandalone, "ERRAND_CONSOLE_TOKEN", "too-short", "ERRAND_CONSOLE_TOKEN is shorter than 16"},
		{RoleStandalone, "ERRAND_CONSOLE_TOKEN", "long enough; but not for a cookie", "ERRAND_CONSOLE_TOKEN is shorter than 16"},
		{RoleClient, "ERRAND_CONSOLE_TOKEN", "", ""},
		{RoleWorker, "ERRAND_CONSOLE_TOKEN", "c\n", "ERRAND_CONSOLE_TOKEN begins or ends with white space"},
		{RoleWorker, "ERRAND_CONSOLE_TOKEN", "[redacted]", "ERRAND_CONSOLE_TOKEN holds [redacted]"},
		{RoleWorker, "ANTHROPIC_API_KEY", "", "ANTHROPIC_API_KEY is not set"},
		{RoleStandalone, "ANTHROPIC_API_KEY", "", "ANTHROPIC_API_KEY is not set"},
		{RoleFrontdoor, "ANTHROPIC_API_KEY", "", ""},
		{RoleWorker, "SLACK_BOT_TOKEN", "", "SLACK_BOT_TOKEN is not set"},
		{RoleWorker, "SLACK_BOT_TOKEN", "xapp-1", "SLACK_BOT_TOKEN holds the app-level token"},
		{RoleWorker, "SLACK_APP_TOKEN", "xoxb-1", "SLACK_APP_TOKEN holds the bot token"},
		{RoleWorker, "SLACK_SIGNING_SECRET", "", "SLACK_SIGNING_SECRET is not set"},
		{RoleClient, "SLACK_SIGNING_SECRET", "", ""},
		{RoleWorker, "GITHUB_TOKEN", "", "GITHUB_TOKEN is not set"},
		{RoleWorker, "GITHUB_WEBHOOK_SECRET", "", "GITHUB_WEBHOOK_SECRET is not set"},
		{RoleClient, "GITHUB_WEBHOOK_SECRET", "", ""},
		{RoleWorker, "GITHUB_APP_ID", "5", "GITHUB_TOKEN and a GitHub App are both set"},
		{RoleWorker, "GITHUB_APP_PRIVATE_KEY_FILE", "/keys/app.pem", "GITHUB_TOKEN and a GitHub App are both set"},
		{RoleClient, "GITHUB_APP_PRIVATE_KEY_FILE", "/keys/none.pem", "GITHUB_APP_PRIVATE_KEY_FILE cannot be read"},
		{RoleClient, "GITHUB_APP_PRIVATE_KEY_FILE", "/keys/public.pem", "GITHUB_APP_PRIVATE_KEY_FILE is /keys/public.pem, which holds no private key"},
		{RoleClient, "GITHUB_APP_PRIVATE_KEY_FILE", testKey, "GITHUB_APP_PRIVATE_KEY_FILE holds a key"},
		{RoleClient, "GITHUB_APP_PRIVATE_KEY", "hush", "GITHUB_APP_PRIVATE_KEY holds no private key in PEM form"},
		{RoleClient, "ERRAND_SANDBOX_SHOW", "go", `ERRAND_SANDBOX_SHOW holds "go", which is not absolute`},
		{RoleClient, "GITHUB_APP_ID", "-5", "GITHUB_APP_ID is -5"},
		{RoleWorker, "SLACK_API_URL", "ftp://slack.com", "SLACK_API_URL is not an absolute"},
		{RoleWorker, "GITHUB_API_URL", "https://u:p@ghe", "GITHUB_API_URL holds a user"},
		{RoleWorker, "GITHUB_URL", "https://ghe?x=1", "GITHUB_URL holds a query"},
		{RoleWorker, "ANTHROPIC_BASE_URL", "/v1", "ANTHROPIC_BASE_URL is not an absolute"},
		{RoleWorker, "ERRAND_PUBLIC_URL", "errand.example", "ERRAND_PUBLIC_URL is not an absolute"},
		{RoleFrontdoor, "ERRAND_QUEUES_WRITABLE", "perhaps", `ERRAND_QUEUES_WRITABLE is "perhaps"; write true or false`},
		{RoleFrontdoor, "ERRAND_TRUSTED_PROXIES", "192.0.2.7", "ERRAND_TRUSTED_PROXY_HEADER is not set although"},
		{RoleFrontdoor, "ERRAND_TRUSTED_PROXIES", "proxy", `ERRAND_TRUSTED_PROXIES is "proxy", which is not a list of addresses; write`},
		{RoleFrontdoor, "ERRAND_TRUSTED_PROXY_HEADER", "X-Forwarded-User", "ERRAND_TRUSTED_PROXIES is not set although"},
		{RoleFrontdoor, "ERRAND_TRUSTED_PROXY_HEADER", "X User", `ERRAND_TRUSTED_PROXY_HEADER is "X User", which is no name`},
		{RoleWorker, "ERRAND_HTTP_ADDR", "localhost", `ERRAND_HTTP_ADDR is "localhost"`},
		{RoleWorker, "ERRAND_HTTP_ADDR", ":http", `ERRAND_HTTP_ADDR is ":http"`},
		{RoleWorker, "ERRAND_WORKER_ADDR", ":65536", `ERRAND_WORKER_ADDR is ":65536"`},
		{RoleWorker, "ERRAND_CONCURRENCY", "1", "ERRAND_CONCURRENCY is 1; write at least 2"},
		{RoleWorker, "ERRAND_CONCURRENCY", "2", ""},
		{RoleWorker, "ERRAND_RUN_LIMIT", "0s", ""},
		{RoleWorker, "ERRAND_RUN_LIMIT", "-1m", "ERRAND_RUN_LIMIT is -1m0s"},
		{RoleWorker, "ERRAND_RUN_LIMIT", "2 hours", `ERRAND_RUN_LIMIT is "2 hours", which is not a duration; write it like`},
		{RoleWorker, "ERRAND_RUN_PROCESSES", "10", "ERRAND_RUN_PROCESSES is 10; write at least 50, or 0 for no limit"},
		{RoleWorker, "ERRAND_RUN_PROCESSES", "0", ""},
		{RoleWorker, "ERRAND_IDLE_LIMIT", "-1m", "ERRAND_IDLE_LIMIT is -1m0s"},
		{RoleWorker, "ERRAND_IDLE_LIMIT", "15", "ERRAND_IDLE_LIMIT is \"15\", a number without a unit; write 15s for seconds or 15m for minutes"},
		{RoleWorker, "ERRAND_FLEET_TOKEN", "short", "ERRAND_FLEET_TOKEN is shorter than 16"},
		{RoleWorker, "ERRAND_METRICS_TOKEN", "short", "ERRAND_METRICS_TOKEN is shorter than 16"},
		{RoleWorker, "ERRAND_LOG_FORMAT", "text", ""},
		{RoleWorker, "ERRAND_LOG_FORMAT", "yaml", `ERRAND_LOG_FORMAT is "yaml"; write json or text`},
		{RoleWorker, "ERRAND_WORKER_URL", "w1:8081", "ERRAND_WORKER_URL is not an absolute http or https URL"},
		{RoleWorker, "ERRAND_KEEP_LOGS", "-1h", "ERRAND_KEEP_LOGS or ERRAND_KEEP_CLONES is below 0 (-1h0m0s"},
		{RoleWorker, "ERRAND_KEEP_CLONES", "0s", ""},
		{RoleWorker, "ERRAND_KEEP_CLONES_GB", "-1", "ERRAND_KEEP_LOGS_GB or ERRAND_KEEP_CLONES_GB is below 0 (5, -1"},
		{RoleWorker, "ERRAND_GRACE", "0s", "ERRAND_GRACE is 0s"},
		{RoleWorker, "ERRAND_GRACE", "35s", ""},
		{RoleWorker, "ERRAND_GRACE", "35001ms", "ERRAND_GRACE is 35.001s"},
		{RoleWorker, "ERRAND_MIN_CLAUDE", "v2.1", `ERRAND_MIN_CLAUDE is "v2.1"`},
		{RoleWorker, "ERRAND_SANDBOX", "yes", `ERRAND_SANDBOX is "yes"; write auto, bwrap or none`},
		{RoleWorker, "ERRAND_SANDBOX", "bwrap", ""},
		{RoleWorker, "ERRAND_GATEWAY", "no", `ERRAND_GATEWAY is "no"; write on or off`},
		{RoleWorker, "ERRAND_GATEWAY", "off", ""},
		{RoleWorker, "ERRAND_LOG_LEVEL", "WARN", ""},
		{RoleWorker, "ERRAND_LOG_LEVEL", "loud", `ERRAND_LOG_LEVEL is "loud"`},
		{RoleWorker, "ERRAND_DIRS", "src", `ERRAND_DIRS holds "src"`},
		{RoleWorker, "ERRAND_CONFIG", "none.yaml", "ERRAND_CONFIG is none.yaml, which cannot be read (file does not exist)"},
	} {
		t.Run(strings.Join([]string{string(tc.role), tc.name, tc.value}, " "), func(t *testing.T) {
			t.Parallel()
			vars := map[string]string{
				"REDIS_URL": "redis://localhost", "ANTHROPIC_API_KEY": "k", "ERRAND_CONSOLE_TOKEN": "console-token-0123",
				"SLACK_BOT_TOKEN": "b", "SLACK_SIGNING_SECRET": "s", "GITHUB_TOKEN": "t", "GITHUB_WEBHOOK_SECRET": "w",
			}
			vars[tc.name] = tc.value
			files := map[string]string{"/keys/app.pem": testKey, "/keys/public.pem": "-----BEGIN PUBLIC KEY-----\nYQ==\n-----END PUBLIC KEY-----\n"}
			_, err := load(getenv(vars), machine(t, files), tc.role)
			if tc.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			checkOnly(t, err, tc.want)
		})
	}
}

func TestBegunSources(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"SLACK_BOT_TOKEN": "b"}, "SLACK_SIGNING_SECRET is not set although"},
		{map[string]string{"SLACK_SIGNING_SECRET": "s"}, "SLACK_BOT_TOKEN is not set although"},
		{map[string]string{"SLACK_APP_TOKEN": "a"}, "SLACK_BOT_TOKEN is not set although"},
		{map[string]string{"GITHUB_TOKEN": "t"}, "GITHUB_WEBHOOK_SECRET is not set although"},
		{map[string]string{"GITHUB_WEBHOOK_SECRET": "w"}, "GITHUB_TOKEN is not set although"},
		{map[string]string{"GITHUB_WEBHOOK_SECRET": "w", "GITHUB_APP_ID": "1"}, "GITHUB_APP_PRIVATE_KEY_FILE is not set although"},
		{map[string]string{"GITHUB_WEBHOOK_SECRET": "w", "GITHUB_APP_PRIVATE_KEY_FILE": "/keys/app.pem"}, "GITHUB_APP_ID is not set although the App's private key is"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			t.Parallel()
			_, err := load(getenv(tc.vars), machine(t, fullFiles), RoleStandalone)
			ps, ok := errors.AsType[Problems](err)
			if !ok || len(ps) != 2 || ps[1].Where != "ANTHROPIC_API_KEY" {
				t.Fatalf("Load = %v, want one problem besides the missing model", err)
			}
			checkOnly(t, ps[:1], tc.want)
		})
	}
}

func TestClientNeedsOneWayIn(t *testing.T) {
	t.Parallel()
	_, err := load(getenv(nil), machine(t, nil), RoleClient)
	checkOnly(t, err, "REDIS_URL and ERRAND_CONSOLE_TOKEN are not set; set one of them")
}

func TestOwnGatewayNeedsNoCredential(t *testing.T) {
	t.Parallel()
	if _, err := load(getenv(map[string]string{"ANTHROPIC_BASE_URL": "http://gateway"}), machine(t, nil), RoleStandalone); err != nil {
		t.Errorf("Load = %v", err)
	}
}

// checkOnly wants exactly one problem, which begins as given and names a way out.
func checkOnly(t *testing.T, err error, want string) {
	t.Helper()
	ps, ok := errors.AsType[Problems](err)
	if !ok || len(ps) != 1 {
		t.Fatalf("got %v, want the one problem %q", err, want)
	}
	if !strings.HasPrefix(ps[0].String(), want) {
		t.Errorf("got %q, want %q", ps[0], want)
	}
	if ps[0].Remedy == "" {
		t.Errorf("%q names no way out", ps[0])
	}
}
