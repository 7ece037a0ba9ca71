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
		"REDIS_URL":              "localhost:6379",
		"SLACK_SIGNING_SECRET":   "s",
		"SLACK_API_URL":          "slack.com",
		"GITHUB_APP_ID":          "Iv1.abc",
		"GITHUB_APP_PRIVATE_KEY": "/keys/none.pem",
		"ERRAND_CONCURRENCY":     "many",
		"ERRAND_RUN_LIMIT":       "7200",
		"ERRAND_SANDBOX":         "docker",
		"ERRAND_LOG_LEVEL":       "loud",
		"ERRAND_DIRS":            "src:/ok",
		"ERRAND_CONFIG":          "/etc/errand.yaml",
	}), machine(t, map[string]string{"/etc/errand.yaml": "channel: {}\npeople: {ann: {}}"}), RoleWorker)
	want := strings.TrimSpace(`
configuration: 13 problems
  - GITHUB_APP_ID must be a whole number, not "Iv1.abc"
  - ERRAND_CONCURRENCY must be a whole number, not "many"
  - ERRAND_RUN_LIMIT must have a unit, like 7200s or 7200m
  - ERRAND_LOG_LEVEL must be debug, info, warn or error, not "loud"
  - GITHUB_APP_PRIVATE_KEY cannot be read (file does not exist); correct the path or the file's permissions
  - /etc/errand.yaml:1: knows no key "channel"; remove it or correct its spelling; the keys here are repositories, channels, people, mcp, rules, options, instructions, plugins, egress, registries, credentials, prices, limits, budgets, slack, github, login, roles, schedules, hooks, webhooks
  - /etc/errand.yaml:2: people.ann has no account; add ` + "`slack: U…`, `github: login` and `email: …`" + `
  - REDIS_URL is not the URL of a Redis; write redis://:PASSWORD@HOST:6379/0 (rediss:// for TLS), or redis+sentinel://:PASSWORD@HOST:26379,HOST:26379/0?master=NAME, with special characters of passwords percent-encoded
  - SLACK_API_URL must be an absolute http or https URL; use only scheme, host and path, like https://ghe.example.com/api/v3
  - ERRAND_SANDBOX must be auto, bwrap or none, not "docker"
  - ERRAND_DIRS must be absolute paths separated by colons; "src" is not absolute
  - SLACK_BOT_TOKEN is not set although Slack is configured; set it to the bot token (xoxb-…), or unset all SLACK_ variables to disable Slack
  - ANTHROPIC_API_KEY is not set; set it or another credential (docs/models.md)`)
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
		{RoleWorker, "REDIS_URL", "rediss://u:p@h", ""},
		{RoleWorker, "REDIS_URL", "unix://:p@/run/redis.sock?db=2", ""},
		{RoleWorker, "REDIS_URL", "redis://p@h:6379", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis:p", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis+sentinel://:p@a:1,b:2,[::1]:3/0?master=m", ""},
		{RoleWorker, "REDIS_URL", "redis+sentinel://:p@a:1,b:2/0", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis+sentinel://:p@a:1,/0?master=m", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis+sentinel://:p@a:1?master=m&masster=n", "REDIS_URL has an unknown parameter"},
		{RoleWorker, "REDIS_URL", "redis://:p@a:1,b:2/0", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis+sentinel://:p@a/0?master=m&db=2", ""},
		{RoleWorker, "REDIS_URL", "redis://:p@a/0?master=m", "REDIS_URL has an unknown parameter or value; use only db; with TLS also skip_verify (true or false)"},
		{RoleWorker, "REDIS_URL", "redis://:p@a/0?max_retries=7", "REDIS_URL has an unknown parameter"},
		{RoleWorker, "REDIS_URL", "redis+sentinel://:p@a/0?master=m&replica_only=true", "REDIS_URL has an unknown parameter"},
		{RoleWorker, "REDIS_URL", "rediss://:p@a?skip_verify=", ""},
		{RoleWorker, "REDIS_URL", "rediss://:p@a?skip_verify=TRUE", "REDIS_URL has an unknown parameter or value"},
		{RoleWorker, "REDIS_URL", "rediss+sentinel://:p@a?master=m&skip_verify=yes", "REDIS_URL has an unknown parameter or"},
		{RoleWorker, "REDIS_URL", "redis://:p@a?skip_verify=true", "REDIS_URL has an unknown parameter or value"},
		{RoleWorker, "REDIS_URL", "redis+sentinel+sentinel://:p@a/0?master=m", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "unix://:p@", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis://:p@h/1/2", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis://:p@h?db=x", "REDIS_URL " + url},
		{RoleWorker, "REDIS_URL", "redis://pa?ss@h", "REDIS_URL has an unknown parameter or value; use only db"},
		{RoleWorker, "REDIS_URL", "redis://h/zero", "REDIS_URL " + url},
		{RoleFrontdoor, "REDIS_URL", "http://h", "REDIS_URL " + url},
		{RoleWorker, "ERRAND_REDIS_CA_FILE", "/keys/cert.pem", "REDIS_URL uses no TLS although a certificate is set"},
		{
			RoleWorker, "ERRAND_REDIS_CA_FILE", "/keys/none.pem",
			"ERRAND_REDIS_CA_FILE cannot be read (file does not exist)",
		},
		{RoleFrontdoor, "ERRAND_CONSOLE_TOKEN", "", "ERRAND_CONSOLE_TOKEN is not set"},
		{RoleWorker, "ERRAND_CONSOLE_TOKEN", "", ""},
		{RoleStandalone, "ERRAND_CONSOLE_TOKEN", "", ""},
		{
			RoleStandalone, "ERRAND_CONSOLE_TOKEN", "too-short",
			"ERRAND_CONSOLE_TOKEN must have at least 16 characters from A-Z, a-z, 0-9 and ._~+/=-",
		},
		{
			RoleStandalone, "ERRAND_CONSOLE_TOKEN", "long enough; but not for a cookie",
			"ERRAND_CONSOLE_TOKEN must have at least 16 characters from A-Z, a-z, 0-9 and ._~+/=-",
		},
		{RoleWorker, "ANTHROPIC_API_KEY", " k ", ""},
		{RoleWorker, "ANTHROPIC_API_KEY", `"k"`, "ANTHROPIC_API_KEY is in quotation marks"},
		{RoleWorker, "REDIS_URL", "'redis://:hush@h:6379/0'", "REDIS_URL is in quotation marks"},
		{RoleWorker, "ERRAND_MODEL", `"opus"`, "ERRAND_MODEL is in quotation marks"},
		{RoleWorker, "ERRAND_CONCURRENCY", `"4"`, "ERRAND_CONCURRENCY is in quotation marks"},
		{RoleWorker, "ERRAND_RUN_LIMIT", "'2h'", "ERRAND_RUN_LIMIT is in quotation marks"},
		{RoleFrontdoor, "ERRAND_TRUSTED_PROXIES", "'192.0.2.7,192.0.2.8'", "ERRAND_TRUSTED_PROXIES is in quotation marks"},
		{RoleFrontdoor, "ERRAND_SANDBOX_SHOW", "'/a:/b'", "ERRAND_SANDBOX_SHOW is in quotation marks"},
		{RoleWorker, "ERRAND_CONSOLE_TOKEN", "[redacted]", "ERRAND_CONSOLE_TOKEN contains the placeholder [redacted]"},
		{RoleWorker, "ANTHROPIC_API_KEY", "", "ANTHROPIC_API_KEY is not set"},
		{RoleStandalone, "ANTHROPIC_API_KEY", "", "ANTHROPIC_API_KEY is not set"},
		{RoleFrontdoor, "ANTHROPIC_API_KEY", "", ""},
		{RoleWorker, "SLACK_BOT_TOKEN", "", "SLACK_BOT_TOKEN is not set"},
		{
			RoleWorker, "SLACK_BOT_TOKEN", "xapp-1",
			"SLACK_BOT_TOKEN must be the bot token (xoxb-…), not the app-level token",
		},
		{
			RoleWorker, "SLACK_APP_TOKEN", "xoxb-1",
			"SLACK_APP_TOKEN must be the app-level token (xapp-…), not the bot token",
		},
		{RoleWorker, "SLACK_SIGNING_SECRET", "", ""},
		{RoleFrontdoor, "SLACK_SIGNING_SECRET", "", "SLACK_SIGNING_SECRET is not set"},
		{RoleWorker, "GITHUB_TOKEN", "", "GITHUB_TOKEN is not set"},
		{RoleWorker, "GITHUB_WEBHOOK_SECRET", "", ""},
		{RoleFrontdoor, "GITHUB_WEBHOOK_SECRET", "", "GITHUB_WEBHOOK_SECRET is not set"},
		{RoleWorker, "GITHUB_APP_ID", "5", "GITHUB_TOKEN and a GitHub App are both set"},
		{RoleWorker, "GITHUB_APP_PRIVATE_KEY", "/keys/app.pem", "GITHUB_TOKEN and a GitHub App are both set"},
		{RoleFrontdoor, "GITHUB_APP_PRIVATE_KEY", "/keys/none.pem", "GITHUB_APP_PRIVATE_KEY cannot be read"},
		{
			RoleFrontdoor, "GITHUB_APP_PRIVATE_KEY", "/keys/public.pem",
			"GITHUB_APP_PRIVATE_KEY is not a private key in PEM form",
		},
		{RoleFrontdoor, "GITHUB_APP_PRIVATE_KEY", "hush", "GITHUB_APP_PRIVATE_KEY is neither a private key in PEM form nor the absolute path of its file"},
		{RoleFrontdoor, "ERRAND_SANDBOX_SHOW", "go", "ERRAND_SANDBOX_SHOW must be absolute paths separated by colons"},
		{RoleFrontdoor, "GITHUB_APP_ID", "-5", "GITHUB_APP_ID must be the number on the App's settings page, not -5"},
		{RoleWorker, "SLACK_API_URL", "ftp://slack.com", "SLACK_API_URL must be an absolute http or https URL"},
		{RoleWorker, "GITHUB_API_URL", "https://u:p@ghe", "GITHUB_API_URL must not contain a user or password"},
		{RoleWorker, "GITHUB_URL", "https://ghe?x=1", "GITHUB_URL must not contain a query or fragment"},
		{RoleWorker, "GITHUB_URL", "https://ghe.example", "GITHUB_URL and GITHUB_API_URL are of different servers"},
		{RoleFrontdoor, "GITHUB_API_URL", "https://ghe.example/api/v3", "GITHUB_URL and GITHUB_API_URL are of"},
		{RoleWorker, "GITHUB_URL", "https://github.com/", ""},
		{RoleWorker, "ANTHROPIC_BASE_URL", "/v1", "ANTHROPIC_BASE_URL must be an absolute http or https URL"},
		{RoleWorker, "ERRAND_PUBLIC_URL", "https://tools.example/errand/", "ERRAND_PUBLIC_URL has a path"},
		{RoleWorker, "ERRAND_PUBLIC_URL", "https://errand.example:8443/", ""},
		{RoleWorker, "ERRAND_PUBLIC_URL", "errand.example", "ERRAND_PUBLIC_URL must be an absolute http or https URL"},
		{
			RoleFrontdoor, "ERRAND_ALLOW_OPEN_REDIS", "perhaps",
			"ERRAND_ALLOW_OPEN_REDIS must be true or false, not \"perhaps\"",
		},
		{RoleFrontdoor, "ERRAND_TRUSTED_PROXIES", "192.0.2.7", "ERRAND_TRUSTED_PROXY_HEADER is not set although"},
		{
			RoleFrontdoor, "ERRAND_TRUSTED_PROXIES", "proxy",
			"ERRAND_TRUSTED_PROXIES must be addresses or networks like 192.0.2.7,198.51.100.0/24, not \"proxy\"",
		},
		{
			RoleFrontdoor, "ERRAND_TRUSTED_PROXY_HEADER", "X-Forwarded-User",
			"ERRAND_TRUSTED_PROXIES is not set although",
		},
		{
			RoleFrontdoor, "ERRAND_TRUSTED_PROXY_HEADER", "X User",
			"ERRAND_TRUSTED_PROXY_HEADER must be a header name like X-Forwarded-User, not \"X User\"",
		},
		{
			RoleWorker, "ERRAND_HTTP_ADDR", "localhost",
			"ERRAND_HTTP_ADDR must be an address like 127.0.0.1:8080, or :8080 for all interfaces, not \"localhost",
		},
		{
			RoleWorker, "ERRAND_HTTP_ADDR", ":http",
			"ERRAND_HTTP_ADDR must be an address like 127.0.0.1:8080, or :8080 for all interfaces, not \":http\"",
		},
		{
			RoleWorker, "ERRAND_WORKER_ADDR", ":65536",
			"ERRAND_WORKER_ADDR must be an address like 127.0.0.1:8080, or :8080 for all interfaces, not \":65536\"",
		},
		{RoleWorker, "ERRAND_CONCURRENCY", "1", "ERRAND_CONCURRENCY must be at least 2, not 1"},
		{RoleWorker, "ERRAND_CONCURRENCY", "2", ""},
		{RoleWorker, "ERRAND_POOL", "gpu-2", ""},
		{RoleWorker, "ERRAND_POOL", "GPU", `ERRAND_POOL is "GPU", which is not the name of a pool`},
		{
			RoleWorker, "ERRAND_POOL", strings.Repeat("a", 31),
			`ERRAND_POOL is "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", which is not the name of a pool`,
		},
		{RoleWorker, "ERRAND_POOL", "a.b", `ERRAND_POOL is "a.b", which is not the name of a pool`},
		{RoleWorker, "ERRAND_RUN_LIMIT", "0s", ""},
		{RoleWorker, "ERRAND_RUN_LIMIT", "-1m", "ERRAND_RUN_LIMIT must not be negative (-1m0s)"},
		{
			RoleWorker, "ERRAND_RUN_LIMIT", "2 hours",
			"ERRAND_RUN_LIMIT must be a duration like 90s, 15m or 2h30m, not \"2 hours\"",
		},
		{
			RoleWorker, "ERRAND_RUN_PROCESSES", "10",
			"ERRAND_RUN_PROCESSES must be at least 50, or 0 for no limit, not 10",
		},
		{RoleWorker, "ERRAND_RUN_PROCESSES", "0", ""},
		{RoleWorker, "ERRAND_IDLE_LIMIT", "-1m", "ERRAND_IDLE_LIMIT must not be negative (-1m0s)"},
		{RoleWorker, "ERRAND_IDLE_LIMIT", "15", "ERRAND_IDLE_LIMIT must have a unit, like 15s or 15m"},
		{
			RoleWorker, "ERRAND_METRICS_TOKEN", "short",
			"ERRAND_METRICS_TOKEN must have at least 16 characters from A-Z, a-z, 0-9 and ._~+/=-",
		},
		{RoleWorker, "ERRAND_WORKER_URL", "w1:8081", "ERRAND_WORKER_URL must be an absolute http or https URL"},
		{
			RoleWorker, "ERRAND_IDLE_LIMIT", "-1h",
			"ERRAND_IDLE_LIMIT must not be negative (-1h0m0s); use a value like 15m, or 0 for no limit",
		},
		{RoleWorker, "ERRAND_KEEP_CLONES_GB", "0", ""},
		{
			RoleWorker, "ERRAND_KEEP_CLONES_GB", "-1",
			"ERRAND_KEEP_CLONES_GB must not be negative (-1); use a value like 50, or 0 for no limit",
		},
		{RoleWorker, "ERRAND_SANDBOX", "yes", "ERRAND_SANDBOX must be auto, bwrap or none, not \"yes\""},
		{RoleWorker, "ERRAND_SANDBOX", "bwrap", ""},
		{RoleWorker, "ERRAND_GATEWAY", "no", "ERRAND_GATEWAY must be on or off, not \"no\""},
		{RoleWorker, "ERRAND_GATEWAY", "off", ""},
		{RoleWorker, "ERRAND_LOG_LEVEL", "WARN", ""},
		{RoleWorker, "ERRAND_LOG_LEVEL", "loud", "ERRAND_LOG_LEVEL must be debug, info, warn or error, not \"loud\""},
		{RoleWorker, "ERRAND_DIRS", "src", "ERRAND_DIRS must be absolute paths separated by colons"},
		{
			RoleWorker, "ERRAND_CONFIG", "none.yaml",
			"ERRAND_CONFIG is none.yaml, which cannot be read (file does not exist)",
		},
	} {
		t.Run(strings.Join([]string{string(tc.role), tc.name, tc.value}, " "), func(t *testing.T) {
			t.Parallel()
			vars := map[string]string{
				"REDIS_URL": "redis://localhost", "ANTHROPIC_API_KEY": "k",
				"ERRAND_CONSOLE_TOKEN": "console-token-0123",
				"SLACK_BOT_TOKEN":      "b", "SLACK_SIGNING_SECRET": "s", "GITHUB_TOKEN": "t",
				"GITHUB_WEBHOOK_SECRET": "w",
			}
			// with an otherwise good App instead of the token
			if strings.HasPrefix(tc.name, "GITHUB_APP_") && tc.role == RoleFrontdoor {
				delete(vars, "GITHUB_TOKEN")
				vars["GITHUB_APP_ID"] = "5"
				if tc.name == "GITHUB_APP_ID" {
					vars["GITHUB_APP_PRIVATE_KEY"] = "/keys/app.pem"
				}
			}
			vars[tc.name] = tc.value
			files := map[string]string{
				"/keys/app.pem": testKey, "/keys/cert.pem": redisCert,
				"/keys/public.pem": "-----BEGIN PUBLIC KEY-----\nYQ==\n-----END PUBLIC KEY-----\n",
			}
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

// Kubernetes writes an IPv6 address without the brackets that a URL needs.
func TestURLWithAnIPv6Address(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"http://fd00::5:8081":        "http://[fd00::5]:8081",
		"http://[fd00::5]:8081":      "http://[fd00::5]:8081",
		"http://10.0.0.5:8081":       "http://10.0.0.5:8081",
		"https://w1.example.test/:8": "https://w1.example.test/:8",
	} {
		c, err := load(getenv(map[string]string{
			"REDIS_URL": "redis://localhost", "ANTHROPIC_API_KEY": "k", "ERRAND_WORKER_URL": given,
		}), machine(t, nil), RoleWorker)
		if err != nil || c.Worker.URL != want {
			t.Errorf("%s is %s, %v", given, c.Worker.URL, err)
		}
	}
}

// Certificates of Redis must be of use.
func TestRedisCertificates(t *testing.T) {
	t.Parallel()
	files := map[string]string{"/cert.pem": redisCert, "/key.pem": redisKey, "/app.pem": testKey}
	for _, tc := range []struct{ ca, cert, key, want string }{
		{"/cert.pem", "", "", ""},
		{"/cert.pem", "/cert.pem", "/key.pem", ""},
		{"", "/cert.pem", "/key.pem", ""},
		{"/key.pem", "", "", "ERRAND_REDIS_CA_FILE has no certificate in PEM form"},
		{
			"", "/cert.pem", "",
			"ERRAND_REDIS_CERT_FILE and ERRAND_REDIS_KEY_FILE are not a certificate and its key in PEM form",
		},
		{
			"", "", "/key.pem",
			"ERRAND_REDIS_CERT_FILE and ERRAND_REDIS_KEY_FILE are not a certificate and its key in PEM form",
		},
		{
			"", "/cert.pem", "/app.pem",
			"ERRAND_REDIS_CERT_FILE and ERRAND_REDIS_KEY_FILE are not a certificate and its key in PEM form",
		},
		{"", "/cert.pem", redisKey, "ERRAND_REDIS_KEY_FILE must be the path of a file, not its content"},
	} {
		for _, url := range []string{"rediss://:p@h", "rediss+sentinel://:p@h?master=m"} {
			c, err := load(getenv(map[string]string{
				"REDIS_URL": url, "ANTHROPIC_API_KEY": "k", "ERRAND_REDIS_CA_FILE": tc.ca,
				"ERRAND_REDIS_CERT_FILE": tc.cert, "ERRAND_REDIS_KEY_FILE": tc.key,
			}), machine(t, files), RoleWorker)
			if tc.want != "" {
				checkOnly(t, err, tc.want)
				continue
			}
			if err != nil {
				t.Errorf("%v: %v", tc, err)
				continue
			}
			a, err := c.Redis.Address()
			if err != nil {
				t.Fatal(err)
			}
			used := a.TLS
			if (used.RootCAs != nil) != (tc.ca != "") || (len(used.Certificates) == 1) != (tc.cert != "") {
				t.Errorf("%v: uses %+v", tc, used)
			}
		}
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
		{map[string]string{"ERRAND_GATEWAY": "off", "ANTHROPIC_CUSTOM_HEADERS": "A: b"}, "ERRAND_GATEWAY is off, so"},
		{map[string]string{"GITHUB_TOKEN": "t"}, "GITHUB_WEBHOOK_SECRET is not set although"},
		{
			map[string]string{"GITHUB_TOKEN": "t", "GITHUB_POLL": "20s"},
			"GITHUB_POLL is set, and no repository is listed",
		},
		{map[string]string{"GITHUB_TOKEN": "t", "GITHUB_POLL": "2s"}, "GITHUB_POLL is less than 10s"},
		{map[string]string{"GITHUB_WEBHOOK_SECRET": "w"}, "GITHUB_TOKEN is not set although"},
		{
			map[string]string{"GITHUB_WEBHOOK_SECRET": "w", "GITHUB_APP_ID": "1"},
			"GITHUB_APP_PRIVATE_KEY is not set although",
		},
		{
			map[string]string{"GITHUB_WEBHOOK_SECRET": "w", "GITHUB_APP_PRIVATE_KEY": "/keys/app.pem"},
			"GITHUB_APP_ID is not set although the App's private key is",
		},
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

func TestOwnGatewayNeedsNoCredential(t *testing.T) {
	t.Parallel()
	if _, err := load(getenv(map[string]string{"ANTHROPIC_BASE_URL": "http://gateway"}), machine(t, nil),
		RoleStandalone); err != nil {
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
	if ps[0].Remedy == "" && !strings.Contains(ps[0].What, "must ") { // a message with the valid values needs no remedy
		t.Errorf("%q has no remedy", ps[0])
	}
}

func TestClouds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		vars map[string]string
		want string // empty: no problem
	}{
		{map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1"}, ""},
		{map[string]string{
			"CLAUDE_CODE_USE_VERTEX": "true", "CLOUD_ML_REGION": "eu", "ANTHROPIC_VERTEX_PROJECT_ID": "p",
		}, ""},
		{map[string]string{"CLAUDE_CODE_USE_FOUNDRY": "1", "ANTHROPIC_FOUNDRY_RESOURCE": "r"}, ""},
		{
			map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_USE_VERTEX": "1"},
			"CLAUDE_CODE_USE_BEDROCK is not the only cloud",
		},
		{
			map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_AUTH_TOKEN": "t"},
			"CLAUDE_CODE_USE_BEDROCK conflicts with a credential",
		},
		{
			map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1", "ERRAND_GATEWAY": "off"},
			"ERRAND_GATEWAY is off, so runs would need",
		},
		{
			map[string]string{"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "eu"},
			"CLAUDE_CODE_USE_VERTEX is set without a project and a region",
		},
		{map[string]string{"CLAUDE_CODE_USE_FOUNDRY": "1"}, "CLAUDE_CODE_USE_FOUNDRY is set without a resource"},
	} {
		tc.vars["REDIS_URL"] = "redis://:p@localhost:6379"
		_, err := Load(getenv(tc.vars), RoleWorker)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v: %v", tc.vars, err)
		}
	}
}
