package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/web/internal/view"
)

func withConfiguration(c *Config) {
	c.Notices = []store.Finding{
		{What: "errand.yaml: 1 repository"}, {
			Severity: store.Warning, What: "ERRAND_MODELS is not a setting", Remedy: "did you mean ERRAND_MODEL?",
		},
	}
	c.Shown = &Configuration{
		Groups: []SettingGroup{
			{Title: "Model: <one> is enough", Settings: []Setting{{
				Name: "ANTHROPIC_API_KEY", Value: "set, hidden", Origin: "environment", About: "A key.",
			}, {Name: "ERRAND_MODEL", Value: "", Origin: "not set", About: "The model."}}},
			{Title: "Keep", Settings: []Setting{{
				Name: "ERRAND_RUN_LIMIT", Value: "3h20m", Origin: "default", About: "Logs.",
			}}},
		},
		File: "/etc/errand.yaml",
		Tables: []Table{{
			Title: "Roles", Columns: []string{"role", "people"}, Rows: [][]string{{"admin", "<ann>@acme.test"}},
		}},
		Published: map[string]string{"errand.yaml": "content 1", "ERRAND_OBJECTS": "s3://a", "ERRAND_MODEL": "opus"},
		Shared:    func(name string) bool { return name != "ERRAND_MODEL" },
	}
}

func (h *harness) beat(id string, settings map[string]string) {
	h.Helper()
	w := store.Worker{ID: id, Host: id + ".test", Settings: settings, Notices: []store.Finding{{What: "fine"}}}
	if _, err := h.Store.Workers.Beat(h.Context(), w); err != nil {
		h.Fatal(err)
	}
}

func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withConfiguration)
	h.beat("same", h.config.Shown.Published)
	a := h.get("/config")
	h.contains(a, http.StatusOK, "ERRAND_MODELS is not a setting", "did you mean ERRAND_MODEL?",
		"!errand.yaml: 1 repository", "It has the settings of the front door.",
		"/etc/errand.yaml", "&lt;ann&gt;@acme.test", "Model: &lt;one&gt; is enough", "set, hidden", "A key.", "3h20m",
		"!No problems found")
	if strings.Index(a.text, "ERRAND_MODELS") > strings.Index(a.text, "same.test") {
		t.Error("the problems come last")
	}
	h.contains(h.get("/config?set=1"), http.StatusOK, "ANTHROPIC_API_KEY", "!3h20m", "!<code>ERRAND_MODEL</code>")
	h.contains(h.get("/fleet"), http.StatusOK, `href="/config"`)
	for _, path := range []string{"/config", "/api/config"} {
		h.problem(h.get(path, "Authorization", "Bearer "+h.apiToken("some"+path[1:2], "operator", "acme/*")),
			http.StatusForbidden)
	}
	h.contains(h.get("/fleet", "Authorization", "Bearer "+h.apiToken("reader", "viewer")), http.StatusOK,
		`!href="/config"`)
}

// A worker with other settings than the front door is shown with them, and its health has a warning if they must agree.
func TestWorkersWithOtherSettings(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withConfiguration)
	h.beat("other", map[string]string{"errand.yaml": "content 2", "ERRAND_MODEL": "sonnet"})
	h.beat("own", map[string]string{"errand.yaml": "content 1", "ERRAND_OBJECTS": "s3://a", "ERRAND_CONCURRENCY": "8"})
	h.beat("old", nil)
	var r view.ConfigReport
	h.into(h.get("/api/config"), http.StatusOK, &r)
	want := map[string][]view.Difference{
		"other": {
			{Name: "ERRAND_MODEL", Here: "opus", There: "sonnet"},
			{Name: "ERRAND_OBJECTS", Here: "s3://a", There: "not set", Shared: true},
			{Name: "errand.yaml", Here: "content 1", There: "content 2", Shared: true},
		},
		"own": {
			{Name: "ERRAND_CONCURRENCY", Here: "not set", There: "8", Shared: true},
			{Name: "ERRAND_MODEL", Here: "opus", There: "not set"},
		},
		"old": {},
	}
	for _, w := range r.Workers {
		if len(w.Differences) != len(want[w.ID]) || w.Unknown != (w.ID == "old") {
			t.Errorf("%s: %+v", w.ID, w)
			continue
		}
		for i, d := range w.Differences {
			if d != want[w.ID][i] {
				t.Errorf("%s: %+v, want %+v", w.ID, d, want[w.ID][i])
			}
		}
	}
	const warning = "its settings differ from the front door&#39;s: ERRAND_OBJECTS, errand.yaml"
	h.contains(h.get("/config"), http.StatusOK, "worker on other.test: "+warning, "must agree", "content 2",
		"It publishes no settings", "!worker on old.test")
	h.contains(h.get("/fleet"), http.StatusOK, warning)
}

// The page is useful while Redis is away.
func TestConfigurationWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHarnessAt(t, &redis.Options{Addr: "127.0.0.1:1"}, withConfiguration)
	h.contains(h.get("/config"), http.StatusOK, "Redis does not answer, so the workers", "3h20m")
}
