package assemble

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

const canary = "canary-0123456789-"

// configured loads a configuration in which every secret setting has a value that begins with the canary. unset names
// settings that exclude others.
func configured(t *testing.T, redisURL string, unset ...string) config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "errand.yaml")
	if err := os.WriteFile(file, []byte(`
repositories: {acme/api: {base: develop}, acme/site: {results: C1}}
limits: {repository: 3}
credentials: [{name: team-a, api_key: '{{env "`+canary+`name"}}', repositories: [acme/*]}]
budgets: {day: 200, task: 0.5}
people: {ann: {slack: U1, github: ann-acme, email: ann@acme.test}}
roles: [{role: admin, people: [ann@acme.test]}]
schedules: {deps: {when: every weekday at 07:00 Europe/Berlin, prompt: Go.}}
hooks: {alerts: {secret: '{{env "ALERTS"}}', template: Look at this., rate: 77}}
rules: [{tool: Read, input: "**/*.pem", action: deny, reason: Private.}]
mcp:
  tickets: {command: /opt/bin/tickets, args: [--token=`+canary+`arg], env: {TICKETS_NOTE: `+canary+`env}}
  search: {url: "https://search.acme.test/`+canary+`path?key=`+canary+`query", headers: {X-Note: "`+canary+`header"}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"REDIS_URL": redisURL, "ERRAND_CONFIG": file, "GITHUB_APP_ID": "1", "ERRAND_STATE_DIR": t.TempDir(),
		"ERRAND_RUN_LIMIT": "1h",
		"SLACK_API_URL":    "http://127.0.0.1:1", "GITHUB_API_URL": "http://127.0.0.1:1", "GITHUB_URL": "http://127.0.0.1:1",
	}
	for _, s := range (config.Config{}).Settings() {
		if s.Secret {
			env[s.Name] = canary + s.Name
		}
	}
	env["OTEL_EXPORTER_OTLP_HEADERS"] = "key=" + canary + "headers"
	env["GITHUB_APP_PRIVATE_KEY"] = strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{
		Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
	})))
	for _, name := range unset {
		delete(env, name)
	}
	c, err := config.Load(func(name string) string { return env[name] }, config.RoleFrontdoor)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The pages and the API show the configuration, and nothing of a secret in it.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t)
	for name, unset := range map[string][]string{
		"App": {"GITHUB_TOKEN"}, "token": {"GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := configured(t, address, unset...)
			_, door := openFrontDoor(t, c, slog.New(slog.DiscardHandler))
			shown := ""
			for _, path := range []string{"/config", "/api/config"} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
				r.Header.Set("Authorization", "Bearer "+c.HTTP.ConsoleToken.Reveal())
				w := httptest.NewRecorder()
				door.ServeHTTP(w, r)
				for _, want := range []string{
					"ANTHROPIC_API_KEY", "set, hidden", "1h", "ann@acme.test", "search.acme.test", "tickets", "develop",
					"0.5", "every weekday at 07:00 Europe/Berlin", "77", "team-a", "api_key",
				} {
					if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
						t.Fatalf("%s: %d without %s\n%s", path, w.Code, want, w.Body)
					}
				}
				shown += w.Body.String()
			}
			for _, secret := range append(c.Secrets(), canary) {
				if i := strings.Index(shown, secret); i >= 0 {
					t.Errorf("a secret is shown: %.300s", shown[max(0, i-150):])
				}
			}
		})
	}
}

// Every setting is on the page once, explained in one sentence.
func TestEverySettingIsExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]config.Setting{}
	c := configured(t, "redis://:p@127.0.0.1:1/0", "GITHUB_TOKEN")
	for _, g := range c.Shown().Groups {
		if g.Title == "" || len(g.Settings) == 0 {
			t.Errorf("group %+v", g)
		}
		for _, s := range g.Settings {
			if _, twice := seen[s.Name]; twice || s.About == "" || len(s.About) > 260 {
				t.Errorf("%+v", s)
			}
			seen[s.Name] = s
		}
	}
	if all := (config.Config{}).Settings(); len(all) != len(seen) {
		t.Errorf("%d settings of %d", len(seen), len(all))
	}
	for name, want := range map[string][2]string{
		"ERRAND_RUN_LIMIT": {"1h", "environment"}, "ERRAND_IDLE_LIMIT": {"15m", "default"},
		"ERRAND_CONCURRENCY": {fmt.Sprint(c.Worker.Concurrency), "computed"},
		"ERRAND_MODEL":       {"", "not set"}, "ERRAND_METRICS_TOKEN": {"set, hidden", "environment"},
		"REDIS_URL": {"redis://:[redacted]@127.0.0.1:1/0", "environment"},
	} {
		if got := seen[name]; got.Value != want[0] || got.Origin != want[1] {
			t.Errorf("%s: %+v, want %v", name, got, want)
		}
	}
	if got := seen["ERRAND_ALLOW_ROOT"].About; got != "true: permit a worker to run as root." {
		t.Error(got)
	}
}
