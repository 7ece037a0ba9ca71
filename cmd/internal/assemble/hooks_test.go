package assemble

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/tasks/desk"
)

// A hook needs no login but its signature, at a whole front door, and its secret is in no log.
func TestHookAtTheFrontDoor(t *testing.T) {
	const secret = "a-secret-of-the-hook"
	t.Setenv("ALERTS_SECRET", secret)
	c := config.Config{
		Redis: config.Redis{URL: config.RedisURL(redistest.Start(t))}, HTTP: config.HTTP{ConsoleToken: consoleToken},
		Paths: config.Paths{State: t.TempDir()},
		Routing: config.Routing{Hooks: map[string]config.Hook{"alerts": {
			Secret: `{{env "ALERTS_SECRET"}}`, Template: "Look at {{.title}}",
		}}},
	}
	var log bytes.Buffer
	p, door := openFrontDoor(t, c, Logger(&log, c))
	body := `{"title": "` + secret + `"}`
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(body))
	for _, tc := range []struct {
		method, path, signature string
		want                    int
	}{
		{"POST", "/hooks/alerts", "sha256=" + hex.EncodeToString(mac.Sum(nil)), http.StatusOK},
		{"POST", "/hooks/alerts", "", http.StatusUnauthorized},
		{"POST", "/hooks/../api/tasks", "", http.StatusUnauthorized},
		{"PUT", "/hooks/../api/tasks", "", http.StatusUnauthorized},
		{"GET", "/hooks/alerts", "", http.StatusMethodNotAllowed},
		{"GET", "/hooks/nothing", "", http.StatusMethodNotAllowed},
		{"DELETE", "/hooks/alerts", "", http.StatusMethodNotAllowed},
		{"GET", "/hooks/alerts/more", "", http.StatusUnauthorized},
		{"GET", "/github/webhook", "", http.StatusUnauthorized}, // GitHub is not configured
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(body))
		r.Header.Set("X-Errand-Signature-256", tc.signature)
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s %s: %d, want %d: %s", tc.method, tc.path, w.Code, tc.want, w.Body)
		}
		if allow := w.Header().Get("Allow"); tc.want == http.StatusMethodNotAllowed &&
			(allow != "POST" || !strings.Contains(w.Body.String(), "Only POST is allowed here.")) {
			t.Errorf("%s %s: %q, %s", tc.method, tc.path, allow, w.Body)
		}
	}
	p.Log.Info("test", slog.String("secret", secret))
	await.Until(t, "the request is a task", func() bool {
		list, err := p.Desk.List(t.Context(), desk.Filter{Limit: 10})
		if err != nil || len(list.Tasks) > 0 && strings.Contains(list.Tasks[0].Task.Prompt, secret) {
			t.Fatalf("tasks %v, %v", list, err)
		}
		return len(list.Tasks) == 1
	})
	if strings.Contains(log.String(), secret) {
		t.Error(log.String())
	}
}

// A front door does not start without the secret of a hook; a worker, which does not have it, does.
func TestSecretsOfHooks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "errand.yaml")
	if err := os.WriteFile(file,
		[]byte(`hooks: {alerts: {secret: '{{env "ERRAND_TEST_ALERTS"}}', template: Go.}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"REDIS_URL": "redis://:p@127.0.0.1:1/0", "ERRAND_CONFIG": file, "ERRAND_CONSOLE_TOKEN": consoleToken,
		"ERRAND_STATE_DIR": t.TempDir(),
	}
	getenv := func(name string) string { return env[name] }
	_, err := Load(getenv, config.RoleFrontdoor)
	if err == nil || !strings.Contains(err.Error(),
		"hooks.alerts.secret cannot be used: the variable ERRAND_TEST_ALERTS is not set") {
		t.Error(err)
	}
	env["ANTHROPIC_API_KEY"] = "k"
	if _, err := Load(getenv, config.RoleWorker); err != nil && strings.Contains(err.Error(), "hooks") {
		t.Error(err)
	}
	env["ERRAND_TEST_ALERTS"] = "a-secret-of-the-hook"
	if _, err := Load(getenv, config.RoleFrontdoor); err != nil {
		t.Error(err)
	}
}
