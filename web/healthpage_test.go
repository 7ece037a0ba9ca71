package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/store"
)

func TestHealthPage(t *testing.T) {
	t.Parallel()
	asked := 0
	h := newHarness(t, func(c *Config) {
		c.Inbound = []Inbound{quiet{}}
		c.Examine = func(context.Context) []store.Finding {
			asked++
			return []store.Finding{{What: "slack accepts the token"}, {Severity: store.Fatal, What: "a scope is missing", Remedy: "Add <it>."}}
		}
	})
	h.contains(h.get("/health"), http.StatusOK, "no worker is alive", "Start a worker", "appendonly is off", "Set appendonly yes", "slack: no event has arrived yet")
	beat := func(id, health string) {
		t.Helper()
		if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: id, Host: id + ".test", Health: json.RawMessage(health)}); err != nil {
			t.Fatal(err)
		}
	}
	beat("a", `{"ok":true,"version":"2.1.9","notices":["the <gateway> is off"]}`)
	h.contains(h.get("/health"), http.StatusOK, `class="banner warning"`, `id="a"`, "the CLI is version 2.1.9", "the &lt;gateway&gt; is off")
	beat("b", `{"ok":false,"problem":"claude has no credential","remedy":"set ANTHROPIC_API_KEY"}`)
	h.contains(h.get("/health"), http.StatusOK, "Some checks failed", "claude has no credential", "set ANTHROPIC_API_KEY", "!slack accepts the token")
	if asked > 0 {
		t.Error("the services were checked without a request")
	}
	a := h.get("/health?services=1")
	h.contains(a, http.StatusOK, "slack accepts the token", "Add &lt;it&gt;.", "!live.js") // which would check them every 3 s
	if strings.Index(a.text, "a scope is missing") > strings.Index(a.text, "slack accepts the token") {
		t.Error("the failed check comes last")
	}
}
