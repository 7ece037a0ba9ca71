package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/web/internal/view"
	"github.com/google/go-cmp/cmp"
)

const offered = `{"offer":{"agents":[{"name":"strategist","description":"Plans"}],"commands":[{"name":"new-feature","argument":"[name]"}],` +
	`"models":[{"name":"opus","title":"Opus","efforts":["low"]}],"configured":true}}`

// A worker is asked about a repository or directory, and its response is cached.
func TestAgents(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	asked := h.Tell(func(q string) string {
		if strings.Contains(q, "/etc") {
			return `{"refused":"No task can work there."}`
		}
		return offered
	})
	var got struct {
		Agents []struct{ Name, Description string }
	}
	for range 2 {
		h.into(h.get("/api/agents?repo=acme/api"), http.StatusOK, &got)
	}
	if len(got.Agents) != 1 || got.Agents[0].Name != "strategist" {
		t.Errorf("%+v", got)
	}
	h.into(h.get("/api/agents?projectPath=/srv/x"), http.StatusOK, &got)
	h.problem(h.get("/api/agents?projectPath=/etc"), http.StatusBadRequest)
	h.problem(h.get("/api/agents?projectPath=/srv/x&repo=acme/api"), http.StatusBadRequest)
	if diff := cmp.Diff([]string{`{"repo":"acme/api"}`, `{"dir":"/srv/x"}`, `{"dir":"/etc"}`}, asked()); diff != "" {
		t.Errorf("the worker was asked (-want +got):\n%s", diff)
	}
}

// The health describes a local directory: whether tasks may work there, and its agents and commands.
func TestHealthOfAProject(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Tell(func(q string) string {
		switch {
		case strings.Contains(q, "/etc"):
			return `{"refused":"No task can work there."}`
		case strings.Contains(q, "/broken"):
			return `{"failed":{"class":"start_failed","message":"it does not start"}}`
		}
		return offered
	})
	for path, want := range map[string]view.Project{
		"/srv/x":  {Valid: true, HasClaude: true, Agents: []string{"strategist"}, Commands: []string{"new-feature"}},
		"/etc":    {Agents: []string{}, Commands: []string{}, Problem: "No task can work there."},
		"/broken": {Agents: []string{}, Commands: []string{}, Problem: "It does not start."},
	} {
		var got struct{ Project *view.Project }
		h.into(h.get("/api/health?projectPath="+path), http.StatusServiceUnavailable, &got) // no worker is alive
		if diff := cmp.Diff(&want, got.Project); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if a := h.get("/api/health"); strings.Contains(a.text, "project") {
		t.Errorf("without projectPath: %s", a.text)
	}
}
