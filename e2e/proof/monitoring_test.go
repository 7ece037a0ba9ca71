package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile     = "deploy/prometheus/errand.rules.yaml"
	dashboardFile = "deploy/grafana/errand.json"
)

// alert is a rule of rulesFile.
type alert struct {
	Alert  string            `json:"alert"`
	Expr   string            `json:"expr"`
	For    string            `json:"for"`
	Labels map[string]string `json:"labels"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal([]byte(read(t, rulesFile)), &file); err != nil || len(file.Groups) != 1 ||
		len(file.Groups[0].Rules) == 0 {
		t.Fatalf("no rules in %s: %v", rulesFile, err)
	}
	return file.Groups[0].Rules
}

// queries returns the queries of the dashboard, over a window as Grafana would put it in.
func queries(t *testing.T, window string) (list []string) {
	t.Helper()
	var board struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, one := range p.Targets {
			list = append(list, strings.ReplaceAll(one.Expr, "$window", window))
		}
	}
	if len(list) == 0 {
		t.Fatal("the dashboard has no queries")
	}
	return list
}

// documented returns the metrics of docs/metrics.md with their labels. TestMetricsAreDocumented holds that table to
// the code.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(errand_[a-z_]+)` \\| ([a-z]+) \\| ([a-z, ]*)\\|").FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		names, known := []string{row[1]}, strings.Split(strings.TrimSpace(row[3]), ", ")
		if row[2] == "histogram" {
			names, known = []string{row[1] + "_bucket", row[1] + "_sum", row[1] + "_count"}, append(known, "le")
		}
		for _, name := range names {
			all[name] = known
		}
	}
	return all
}

// used returns the metrics that an expression reads, with the labels that it selects and groups by.
func used(t *testing.T, text string) map[string][]string {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return nil
	}
	all := map[string][]string{}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			all[n.Name] = append(all[n.Name], "")
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel {
					all[n.Name] = append(all[n.Name], m.Name)
				}
			}
		case *parser.AggregateExpr:
			for name := range used(t, n.Expr.String()) {
				all[name] = append(all[name], n.Grouping...)
			}
		}
		return nil
	})
	return all
}

// Prometheus' parser reads every expression, which uses only metrics and labels that there are. The dashboard shows
// every metric.
func TestExpressions(t *testing.T) {
	t.Parallel()
	known, shown := documented(t), map[string]bool{}
	check := func(text string) {
		metrics := used(t, text)
		if len(metrics) == 0 {
			t.Errorf("%s uses no metric", text)
		}
		for name, by := range metrics {
			shown[name] = true
			if known[name] == nil {
				t.Errorf("%s uses %s, which docs/metrics.md does not have", text, name)
			}
			for _, label := range by {
				if label != "" && !slices.Contains(known[name], label) {
					t.Errorf("%s: %s has no label %s", text, name, label)
				}
			}
		}
	}
	for _, query := range queries(t, "15m") {
		check(query)
	}
	for name := range known {
		if !shown[name] && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	for _, a := range alerts(t) {
		check(a.Expr)
	}
}

// promtool runs Prometheus' own tool.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v (make proof installs it)\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRulesFile(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(top, rulesFile))
}

// faults are the series, over two hours, that each alert is for. Without a fault there are the series of healthy.
var faults = map[string]map[string]string{
	"ErrandNotScraped":       {`errand_fleet_up{instance="door"}`: "stale"},
	"ErrandRedisUnreachable": {`errand_fleet_up{instance="door"}`: "0x120"},
	"ErrandRedisFull":        {`errand_redis_memory_bytes`: "81x120"},
	"ErrandNoWorkers":        {`errand_workers{pool="default",state="ready"}`: "0x120", `errand_workers_wanted{pool="default"}`: "1x120"},
	"ErrandWorkerUnable":     {`errand_workers{pool="default",state="unable"}`: "1x120"},
	"ErrandAnswersNotPosted": {`errand_outbox_oldest_seconds`: "0+60x120"},
	"ErrandPeopleWait":       {`errand_queue_oldest_seconds{pool="default",class="interactive"}`: "0+60x120"},
	"ErrandTasksWait":        {`errand_queue_oldest_seconds{pool="default",class="review"}`: "3600+60x120"},
	"ErrandRateLimited":      {`errand_service_requests_total{service="slack",result="limited"}`: "0+60x120"},
	"ErrandCredentialHeld":   {`errand_credentials{state="held"}`: "1x120"},
	"ErrandClaimsLost":       {`errand_task_returns_total{class="review",reason="claim_lost"}`: "0+1x120"},
	"ErrandWorkerDied":       {`errand_task_returns_total{class="review",reason="crash"}`: "0x100 1x20"},
	"ErrandInternalErrors":   {`errand_task_returns_total{class="review",reason="error"}`: "0+1x120"},
	"ErrandStuckProcess":     {`errand_run_stuck_processes_total`: "0x100 1x20"},
	"ErrandDiskLow":          {`errand_disk_free_bytes{instance="worker"}`: "5x120"},
	"ErrandDailyCost":        {`errand_run_cost_usd_total{source="slack",repository="acme/api",model="opus"}`: "0+2x120"},
}

// healthy are the series of a fleet that works, one of whose pools is empty because nothing wants to run there.
var healthy = map[string]string{
	`errand_fleet_up{instance="door"}`: "1x120", `errand_workers{pool="default",state="ready"}`: "2x120", `errand_workers_wanted{pool="default"}`: "1x120",
	`errand_workers{pool="default",state="unable"}`: "0x120", `errand_workers{pool="gpu",state="ready"}`: "0x120", `errand_workers_wanted{pool="gpu"}`: "0x120",
	`errand_outbox_oldest_seconds`: "0x120", `errand_queue_oldest_seconds{pool="default",class="interactive"}`: "4x120",
	`errand_queue_oldest_seconds{pool="default",class="review"}`:                   "900x120",
	`errand_service_requests_total{service="slack",result="limited"}`:              "0+1x120",
	`errand_service_requests_total{service="slack",result="2xx"}`:                  "0+600x120",
	`errand_redis_memory_bytes`:                                                    "79x120",
	`errand_redis_memory_limit_bytes`:                                              "100x120",
	`errand_credentials{state="held"}`:                                             "0x120",
	`errand_task_returns_total{class="review",reason="wait"}`:                      "0+10x120",
	`errand_task_returns_total{class="review",reason="crash"}`:                     "7x120",
	`errand_run_stuck_processes_total`:                                             "1x120",
	`errand_disk_free_bytes{instance="worker"}`:                                    "50x120",
	`errand_disk_size_bytes{instance="worker"}`:                                    "100x120",
	`errand_run_cost_usd_total{source="slack",repository="acme/api",model="opus"}`: "0+0.1x120",
}

// Each fault raises its alert and no other, and a healthy fleet raises none, in promtool's own evaluation.
func TestAlerts(t *testing.T) {
	t.Parallel()
	rules, err := filepath.Abs(filepath.Join(top, rulesFile))
	if err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	test := func(name string, fault map[string]string) object {
		series := []object{}
		for _, all := range []map[string]string{healthy, fault} {
			for key, values := range all {
				if _, replaced := fault[key]; (!replaced || fault[key] == values) && values != "stale" {
					series = append(series, object{"series": key, "values": values})
				}
			}
		}
		firing := []object{}
		if name != "" {
			firing = append(firing, object{"labels": fmt.Sprintf("{alertname=%q}", name), "value": 1})
		}
		return object{
			"name": name, "interval": "1m", "input_series": series, "promql_expr_test": []object{
				{"expr": `count by (alertname) (ALERTS{alertstate="firing"})`, "eval_time": "2h", "exp_samples": firing},
			},
		}
	}
	tests := []object{test("", nil)}
	for _, a := range alerts(t) {
		if faults[a.Alert] == nil {
			t.Errorf("no fault for %s", a.Alert)
		}
		tests = append(tests, test(a.Alert, faults[a.Alert]))
	}
	if len(tests) != len(faults)+1 {
		t.Errorf("%d alerts, and faults for %d", len(tests)-1, len(faults))
	}
	text, err := yaml.Marshal(object{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tests.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "test", "rules", file)
}
