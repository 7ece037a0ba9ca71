package assemble

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// openFrontDoor opens a front door, which ends with the test.
func openFrontDoor(t *testing.T, c config.Config, log *slog.Logger) (*Parts, *Door) {
	t.Helper()
	p, err := New(c, log, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	door, err := p.FrontDoor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = door.Close() })
	return p, door
}

// frontDoor returns a front door on a Redis, and a function that asks it for a page.
func frontDoor(t *testing.T, url string) (get func(path string) (int, string)) {
	t.Helper()
	token := strings.Repeat("x", 32)
	settings := map[string]string{"REDIS_URL": url, "ERRAND_CONSOLE_TOKEN": token, "ERRAND_STATE_DIR": t.TempDir()}
	c, err := Load(func(name string) string { return settings[name] }, config.RoleFrontdoor)
	if err != nil {
		t.Fatal(err)
	}
	_, door := openFrontDoor(t, c, slog.New(slog.DiscardHandler))
	return func(path string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
}

// A front door says what is wrong with Redis, and what to do, in its probe and its health.
func TestFrontDoorNamesTheFault(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	m.RequireAuth("right")
	get := frontDoor(t, "redis://:wrong@"+m.Addr())
	const what, remedy = "Redis refuses the user or password", "Correct the user and password in REDIS_URL."
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || body != what+"\n" {
		t.Errorf("the probe says %d %q", code, body)
	}
	code, body := get("/api/health")
	var health struct {
		Problem string
		Checks  []struct{ What, Remedy string }
	}
	if err := json.Unmarshal([]byte(body), &health); err != nil || code != http.StatusServiceUnavailable ||
		health.Problem != what {
		t.Errorf("the health is %d %s, %v", code, body, err)
	}
	if len(health.Checks) == 0 || health.Checks[0].What != what || health.Checks[0].Remedy != remedy {
		t.Errorf("the checks are %+v", health.Checks)
	}
}

// Metrics say that the fleet does not work if Redis can be read and not be used, and still what is in it.
func TestMetricsOfARedisThatRefusesWrites(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t)
	expect := func(line string) {
		t.Helper()
		get := frontDoor(t, url) // a front door keeps the result of its last write for 5 s
		if code, body := get("/metrics"); code != http.StatusOK || !strings.Contains(body, "\n"+line+"\n") ||
			!strings.Contains(body, "\nerrand_outbox_endings 0\n") {
			t.Errorf("%d without %s in\n%s", code, line, body)
		}
	}
	expect("errand_fleet_up 1")
	r := redistest.Client(t, url)
	if err := r.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	expect("errand_fleet_up 0")
}
