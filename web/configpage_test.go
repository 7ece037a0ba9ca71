package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/store"
)

func withConfiguration(c *Config) {
	c.Notices = []store.Finding{
		{What: "errand.yaml: 1 repository"}, {
			Severity: store.Warning, What: "ERRAND_MODELS is not a setting", Remedy: "did you mean ERRAND_MODEL?",
		},
	}
	c.Shown = &config.Shown{
		Groups: []config.Group{
			{Title: "Model: <one> is enough", Settings: []config.Setting{{
				Name: "ANTHROPIC_API_KEY", Value: "set, hidden", Origin: "environment", About: "A key.",
			}, {Name: "ERRAND_MODEL", Value: "", Origin: "not set", About: "The model."}}},
			{Title: "Keep", Settings: []config.Setting{{
				Name: "ERRAND_RUN_LIMIT", Value: "3h20m", Origin: "default", About: "Logs.",
			}}},
		},
		File: "/etc/errand.yaml",
		Tables: []config.Section{{
			Title: "Roles", Columns: []string{"role", "people"}, Rows: [][]string{{"admin", "<ann>@acme.test"}},
		}},
		Digest: "1",
	}
}

func (h *harness) beat(id, digest string) {
	h.Helper()
	w := store.Worker{ID: id, Host: id + ".test", Digest: digest, Notices: []store.Finding{{What: "fine"}}}
	if _, err := h.Store.Workers.Beat(h.Context(), w); err != nil {
		h.Fatal(err)
	}
}

func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withConfiguration)
	h.beat("same", "1")
	a := h.get("/config")
	h.contains(a, http.StatusOK, "ERRAND_MODELS is not a setting", "did you mean ERRAND_MODEL?",
		"!errand.yaml: 1 repository", "!same.test",
		"/etc/errand.yaml", "&lt;ann&gt;@acme.test", "Model: &lt;one&gt; is enough", "set, hidden", "A key.", "3h20m",
		"!No problems found")
	if strings.Index(a.text, "ERRAND_MODELS") > strings.Index(a.text, "/etc/errand.yaml") {
		t.Error("the problems come last")
	}
	model, _, _ := strings.Cut(a.text, "<h3>Keep</h3>")
	set, folded, _ := strings.Cut(model, "<summary>1 not set</summary>")
	if !strings.Contains(set, "ANTHROPIC_API_KEY") || strings.Contains(set, "<code>ERRAND_MODEL</code>") ||
		!strings.Contains(folded, "<code>ERRAND_MODEL</code>") {
		t.Error("what is not set is not folded")
	}
	h.contains(h.get("/fleet"), http.StatusOK, `href="/config"`)
	for _, path := range []string{"/config", "/api/config"} {
		h.problem(h.get(path, "Authorization", "Bearer "+h.apiToken("some"+path[1:2], "operator", "acme/*")),
			http.StatusForbidden)
	}
	h.contains(h.get("/fleet", "Authorization", "Bearer "+h.apiToken("reader", "viewer")), http.StatusOK,
		`!href="/config"`)
}

// A worker with another errand.yaml or shared setting than the front door's is a problem, there and on the page Fleet.
func TestWorkersWithAnotherFile(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withConfiguration)
	h.beat("other", "2")
	h.beat("same", "1")
	h.beat("old", "")
	const warning = "errand.yaml, or a setting that all processes share, differs from the front door&#39;s"
	h.contains(h.get("/config"), http.StatusOK, "worker on other.test: "+warning, "!worker on old.test",
		"!worker on same.test")
	h.contains(h.get("/fleet"), http.StatusOK, warning)
}

// The page is useful while Redis is away.
func TestConfigurationWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHarnessAt(t, &redis.Options{Addr: "127.0.0.1:1"}, withConfiguration)
	h.contains(h.get("/config"), http.StatusOK, "Redis does not answer, so the workers", "3h20m")
}
