package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/cmd/internal/assemble"
	"github.com/errand-fleet/errand/config"
)

const metricsToken = "metrics-token-for-tests"

// read sends a request with a token and returns status and body.
func (w *world) read(url, token string) (int, string) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, url, nil)
	if err != nil {
		w.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// measured checks that the first mention is in the metrics of every part: the desk, the run, the ending, Slack, the
// fleet. Each token gives access only to its own pages.
func (w *world) measured(base string) {
	w.Helper()
	_, all := w.read(base+"/metrics", metricsToken)
	for _, want := range []string{
		`errand_tasks_submitted_total{class="interactive",result="new",source="slack"} 1`,
		`errand_task_wait_seconds_count{class="interactive"} 1`,
		`errand_runs_total{class="interactive",error="",outcome="done",source="slack"} 1`,
		`errand_run_cost_usd_total{model="`, `,repository="` + repo + `",source="slack"}`,
		`errand_model_calls_total `,
		`errand_service_requests_total{result="2xx",service="slack"}`,
		`errand_service_requests_total{result="limited",service="github"} 0`,
		`errand_fleet_up 1`, `errand_slots{pool="default"} 3`, `errand_disk_free_bytes `, `errand_build_info{version="`,
		`go_goroutines `,
	} {
		if !strings.Contains(all, want) {
			w.Errorf("no %s in\n%s", want, all)
		}
	}
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/metrics", "", 401},
		{"/metrics", token, 200},
		{"/metrics", metricsToken, 200},
		{"/api/tasks", metricsToken, 401},
		{"/metrics/", metricsToken, 401},
	} {
		if got, _ := w.read(base+c.path, c.token); got != c.want {
			w.Errorf("GET %s with %q: %d, want %d", c.path, c.token, got, c.want)
		}
	}
}

// A worker should serve its metrics only with their token, and not at all without a configured one, because any
// process on its machine can connect.
func TestWorkerShowsMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		set, shown string
		want       int
	}{
		{metricsToken, metricsToken, 200},
		{metricsToken, "", 401},
		{metricsToken, token, 401},
		{"", "", 401},
		{"", token, 401},
	} {
		w.env["ERRAND_METRICS_TOKEN"] = c.set
		loaded, err := config.Load(w.getenv, config.RoleWorker)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := assemble.New(loaded, assemble.Logger(w.Output(), loaded), quick)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer((&station{parts: parts}).probes(t.Context()))
		if got, _ := w.read(server.URL+"/metrics", c.shown); got != c.want {
			t.Errorf("token %q, shown %q: %d, want %d", c.set, c.shown, got, c.want)
		}
		server.Close()
		if err := parts.Close(); err != nil {
			t.Error(err)
		}
	}
}
