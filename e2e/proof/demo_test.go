package proof

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// patience bounds each wait; the demo takes half a minute.
const patience = 3 * time.Minute

// start starts a program that ends with the test and returns what it prints. Its errors are logged if the test fails.
func start(t *testing.T, name string, args ...string) io.Reader {
	t.Helper()
	cmd, said := exec.Command(name, args...), &strings.Builder{}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v (make proof installs or builds it)", name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_, _ = io.Copy(io.Discard, out)
		err := cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %v\n%s", name, err, said)
		}
	})
	return out
}

// demo is the running bin/demo: a front door and a worker in one process, and fakes.
type demo struct {
	base, token string
	lines       *bufio.Scanner
}

func startDemo(t *testing.T) *demo {
	t.Helper()
	d := &demo{lines: bufio.NewScanner(start(t, filepath.Join(top, "bin/demo")))}
	for d.token == "" && d.lines.Scan() {
		switch name, value, _ := strings.Cut(strings.TrimSpace(d.lines.Text()), " "); name {
		case "console":
			d.base, _, _ = strings.Cut(strings.TrimSpace(value), "/login?")
		case "token":
			d.token = strings.TrimSpace(value)
		}
	}
	if d.token == "" {
		t.Fatal("the demo ended before it was up: make demo")
	}
	return d
}

// inhabited waits until the demo has a task of each kind.
func (d *demo) inhabited(t *testing.T) {
	t.Helper()
	for d.lines.Scan() {
		if strings.HasPrefix(d.lines.Text(), "All of it stays up") {
			return
		}
	}
	t.Fatal("the demo ended before its tasks were in their states: make demo ARGS=-once")
}

// get200 returns the body of a response with status 200.
func get200(ctx context.Context, address, token string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

// startPrometheus starts a Prometheus with our rules that scrapes the demo each second, and returns its API.
func startPrometheus(t *testing.T, d *demo) string {
	t.Helper()
	target, err := url.Parse(d.base)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(filepath.Join(top, rulesFile))
	if err != nil {
		t.Fatal(err)
	}
	config, err := yaml.Marshal(map[string]any{
		"global": map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": []string{rules},
		"scrape_configs": []any{map[string]any{
			"job_name": "errand", "authorization": map[string]any{"credentials": d.token},
			"static_configs": []any{map[string]any{"targets": []string{target.Host}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "prometheus.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "config", file)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_ = free.Close()
	start(t, "prometheus", "--config.file="+file, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+addr)
	return "http://" + addr + "/api/v1/"
}

// ask sends a request to Prometheus' API and decodes the data of its answer.
func ask[T any](ctx context.Context, address string) (data T, err error) {
	body, err := get200(ctx, address, "")
	if err != nil {
		return data, err
	}
	answer := struct {
		Status string `json:"status"`
		Data   *T     `json:"data"`
	}{Data: &data}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return data, fmt.Errorf("%s: %w", body, err)
	}
	return data, nil
}

// query returns how many series an expression has.
func query(ctx context.Context, api, expr string) (int, error) {
	data, err := ask[struct {
		Result []any `json:"result"`
	}](ctx, api+"query?query="+url.QueryEscape(expr))
	return len(data.Result), err
}

// until repeats a check until it is true.
func until(ctx context.Context, t *testing.T, what string, check func() (bool, error)) {
	t.Helper()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		ok, err := check()
		if ok && err == nil {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
	}
}

// rule is an alert as Prometheus sees it.
type rule struct {
	Name      string `json:"name"`
	Health    string `json:"health"` // unknown until it is evaluated
	LastError string `json:"lastError"`
}

// withData are what the demo's tasks leave in any case.
var withData = []string{
	"errand_tasks", "errand_queue_tasks", "errand_queue_oldest_seconds", "errand_tasks_submitted_total",
	"errand_task_endings_total", "errand_task_wait_seconds_bucket", "errand_runs_total",
	"errand_run_duration_seconds_bucket", "errand_run_cost_usd_total", "errand_run_tokens_total",
	"errand_model_calls_total", "errand_workers", "errand_slots", "errand_slots_taken",
	"errand_outbox_lag_seconds_bucket", "errand_service_requests_total",
}

// A real Prometheus scrapes the demo: what it serves passes promtool, all rules are evaluated, and each query of the
// dashboard is answered, with data where the demo has some.
func TestDemoInPrometheus(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d := startDemo(t)
	api := startPrometheus(t, d)
	d.inhabited(t)
	served, err := get200(ctx, d.base+"/metrics", d.token)
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, string(served), "check", "metrics")
	serves := func(name string) bool {
		return strings.Contains(string(served), "\n"+name+"{") || strings.Contains(string(served), "\n"+name+" ")
	}
	for _, name := range withData {
		if !serves(name) {
			t.Errorf("the demo serves no %s", name)
		}
	}
	// Every series has been scraped several times, so that it has an increase.
	series := strings.Count(string(served), "\nerrand_")
	until(ctx, t, "scrape the demo", func() (bool, error) {
		n, err := query(ctx, api, fmt.Sprintf(`count({__name__=~"errand_.+"} offset 3s) >= %d`, series))
		return n > 0, err
	})
	for _, expr := range queries(t, "5m") {
		n, err := query(ctx, api, expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
		}
		want := true
		for name := range used(t, expr) {
			want = want && serves(name)
		}
		if want && n == 0 {
			t.Errorf("%s: no data although the demo serves its metrics", expr)
		}
	}
	var rules []rule
	until(ctx, t, "evaluate the rules", func() (bool, error) {
		data, err := ask[struct {
			Groups []struct {
				Rules []rule `json:"rules"`
			} `json:"groups"`
		}](ctx, api+"rules")
		if err != nil || len(data.Groups) != 1 {
			return false, err
		}
		rules = data.Groups[0].Rules
		return !slices.ContainsFunc(rules, func(r rule) bool { return r.Health == "unknown" }), nil
	})
	for _, r := range rules {
		if r.Health != "ok" {
			t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
}
