package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/auth"
)

// withRoutes adds routes like those of sources: one that verifies a signature, some that rely on the console, and one
// whose name begins like an open one.
func withRoutes(c *Config) {
	c.Mux = http.NewServeMux()
	c.Open = []string{"/slack/"}
	c.Roles = map[string]policy.Role{
		"POST /api/chat": policy.User, "/metrics": policy.Operator, "/slackery/x": policy.Viewer,
	}
	for _, pattern := range []string{"POST /slack/events", "POST /api/chat", "/metrics", "/slackery/x"} {
		c.Mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	}
}

func TestNothingIsOpenThatIsNotMeantToBe(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withRoutes)
	id := h.submit(1)
	for _, path := range []string{
		"GET /", "GET /tasks/" + id, "POST /tasks/" + id + "/cancel", "POST /tasks/" + id + "/retry",
		"POST /static/task.js", "GET /queues/", "GET /queues/api/queues", "GET /api/tasks",
		"GET /api/tasks/" + id, "GET /api/tasks/" + id + "/events", "GET /api/tasks/" + id + "/log",
		"POST /api/tasks/" + id + "/cancel", "POST /api/tasks/" + id + "/retry", "GET /api/health", "POST /api/chat",
		"GET /metrics", "GET /slackery/x", "GET /nothing", "POST /livez", "GET /livez/x", "GET /login",
		// Spellings of paths that begin like an open one.
		"GET /slack/../api/tasks", "GET /slack/%2e%2e/api/tasks", "GET /slack%2f..%2fapi/tasks",
		"GET //slack/../metrics",
		"GET /slack/nothing", "GET /slack", "GET /static/../api/tasks", "GET /static%2f..%2fapi/tasks",
	} {
		method, path, _ := strings.Cut(path, " ")
		for name, hs := range map[string]header{
			"no token":         {"Authorization", ""},
			"wrong token":      {"Authorization", "Bearer wrong"},
			"longer token":     {"Authorization", "Bearer " + token + "x"},
			"empty token":      {"Authorization", "Bearer "},
			"other scheme":     {"Authorization", "Basic " + token},
			"wrong cookie":     {"Authorization", "", "Cookie", auth.CookieName + "=wrong"},
			"cookie elsewhere": {"Authorization", "", "Cookie", "other=" + token},
		} {
			a := h.send(h.request(method, path, "", hs))
			if a.StatusCode == http.StatusTemporaryRedirect || a.StatusCode == http.StatusMovedPermanently {
				continue // to the clean spelling, which is in this list or like it
			}
			h.problem(a, http.StatusUnauthorized)
			if a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s with %s: no WWW-Authenticate header", method, path, name)
			}
		}
	}
	if s, err := h.Desk.Status(t.Context(), id); err != nil || s.Cancel != "" {
		t.Errorf("cancelled by %q, %v", s.Cancel, err)
	}
}

func TestWhatIsOpen(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withRoutes)
	for path, want := range map[string]int{
		"GET /livez": 200, "HEAD /livez": 200, "GET /readyz": 200, "GET /static/style.css": 200,
		"POST /slack/events": http.StatusTeapot,
	} {
		method, path, _ := strings.Cut(path, " ")
		// A webhook may come from any origin.
		if a := h.do(method, path, "", "Authorization", "", "Origin", "https://elsewhere.test"); a.StatusCode != want {
			t.Errorf("%s %s: %s", method, path, a.Status)
		}
	}
}

func TestTokenOpens(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withRoutes)
	for path, want := range map[string]int{
		"GET /": 200, "GET /api/tasks": 200, "GET /static/task.js": 200, "POST /api/chat": http.StatusTeapot,
		"GET /metrics": http.StatusTeapot,
	} {
		method, path, _ := strings.Cut(path, " ")
		for _, hs := range []header{
			{"Authorization", "Bearer " + token},
			{"Authorization", "bearer " + token},
			{"Authorization", "", "Cookie", auth.CookieName + "=old; " + auth.CookieName + "=" + h.cookieValue()},
		} {
			if a := h.send(h.request(method, path, "", hs)); a.StatusCode != want {
				t.Errorf("%s %s with %v: %s", method, path, hs, a.Status)
			}
		}
	}
}

// Old browsers send the cookie with requests that another site makes them send.
func TestOtherSitesCannotAct(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withRoutes)
	id := h.submit(1)
	for _, hs := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://elsewhere.test"}, {"Origin", "null"},
	} {
		for _, path := range []string{
			"/api/tasks/" + id + "/cancel", "/tasks/" + id + "/cancel", "/api/chat", "/queues/api/queues/x:pause",
		} {
			h.problem(h.do("POST", path, "", append(hs, "Authorization", "", "Cookie",
				auth.CookieName+"="+h.cookieValue())...), http.StatusForbidden)
		}
	}
	if s, err := h.Desk.Status(t.Context(), id); err != nil || s.Cancel != "" {
		t.Errorf("cancelled by %q, %v", s.Cancel, err)
	}
	same := []string{"Origin", h.server.URL, "Authorization", "", "Cookie", auth.CookieName + "=" + h.cookieValue()}
	if a := h.do("POST", "/api/tasks/"+id+"/cancel", "", same...); a.StatusCode != http.StatusAccepted {
		t.Errorf("from the console's own page: %s", a.Status)
	}
}

func TestNewRefusesWhatWouldBeOpenOrBroken(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, set := range map[string]func(*Config){
		"no token":         func(c *Config) { c.Token = "" },
		"unfit for cookie": func(c *Config) { c.Token = "a;b" },
		"no desk":          func(c *Config) { c.Desk = nil },
		"no store":         func(c *Config) { c.Store = nil },
		"no Redis":         func(c *Config) { c.Redis = nil },
		"all open":         func(c *Config) { c.Open = []string{"/"} },
		"open nothing":     func(c *Config) { c.Open = []string{""} },
		"half a segment":   func(c *Config) { c.Open = []string{"/sl"} },
	} {
		cfg := h.config
		cfg.Mux = nil
		set(&cfg)
		if got, err := New(cfg); err == nil {
			_ = got.Close()
			t.Errorf("%s: no error", name)
		}
	}
}
