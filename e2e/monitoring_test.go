package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false,
	"rewrite deploy/prometheus and deploy/grafana from the tables of docs/metrics.md")

// TestMonitoringFiles checks that rules and dashboard follow from the tables of docs/metrics.md. e2e/proof checks
// their expressions.
func TestMonitoringFiles(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"../deploy/prometheus/errand.rules.yaml": rules(t, string(doc)),
		"../deploy/grafana/errand.json":          dashboard(t, string(doc)),
	} {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s does not follow from docs/metrics.md: run go -C e2e test . -update (%v)", name, err)
		}
	}
}

// tableRows returns the cells of the table with these columns.
func tableRows(t *testing.T, doc string, columns ...string) (rows [][]string) {
	t.Helper()
	_, table, found := strings.Cut(doc, "\n| "+strings.Join(columns, " | ")+" |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n")[1:] { // the first one is the line below the head
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != len(columns) {
			t.Fatalf("%d cells, want %d: %s", len(cells), len(columns), line)
		}
		rows = append(rows, cells)
	}
	if !found || len(rows) < 2 {
		t.Fatalf("docs/metrics.md has no table of %q", columns)
	}
	return rows
}

// rules returns the alerts as a file of rules.
func rules(t *testing.T, doc string) string {
	t.Helper()
	type rule struct {
		Alert       string            `json:"alert"`
		Expr        string            `json:"expr"`
		For         string            `json:"for"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
	var list []rule
	for _, row := range tableRows(t, doc, "alert", "expression", "for", "severity", "meaning", "what to do") {
		list = append(list, rule{
			strings.Trim(row[0], "`"), strings.Trim(row[1], "`"), row[2],
			map[string]string{"severity": row[3]},
			map[string]string{
				"summary": strings.ReplaceAll(row[4], "`", ""), "description": strings.ReplaceAll(row[5], "`", ""),
				"runbook_url": "https://github.com/errand-fleet/errand/blob/main/docs/metrics.md#alerts-and-dashboard",
			},
		})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "errand", "rules": list}}})
	if err != nil {
		t.Fatal(err)
	}
	return "# Alerts for Prometheus, generated from docs/metrics.md by `go -C e2e test . -update`.\n" + string(text)
}

// overview is the first line of the dashboard.
var overview = []struct{ title, query, unit string }{
	{"Running", `max(errand_tasks{state="running"})`, "none"},
	{"Waiting", `max(errand_tasks{state="waiting"})`, "none"},
	{"Oldest request of a person", `max(errand_queue_oldest_seconds{class="interactive"})`, "s"},
	{"Free slots", `sum(max by (pool) (errand_slots)) - sum(max by (pool) (errand_slots_taken))`, "none"},
	{"Answers not posted", `max(errand_outbox_endings)`, "none"},
	{"Cost of a day", `sum(increase(errand_run_cost_usd_total[1d]))`, "currencyUSD"},
}

// sections order the panels of the metrics, by the beginning of their names. The first that fits counts.
var sections = []struct {
	title string
	names *regexp.Regexp
}{
	{"Runs", regexp.MustCompile(`^(run|runs|egress)_`)},
	{"Model", regexp.MustCompile(`^(model|credentials)`)},
	{"Workers", regexp.MustCompile(`^(workers|slots|disk|build|fleet|redis)`)},
	{"Answers, Slack and GitHub", regexp.MustCompile(`^(outbox|service)_`)},
	{"Tasks", regexp.MustCompile(``)},
}

// object is one of JSON.
type object = map[string]any

// dashboard returns the dashboard for Grafana: the overview, and a panel for each metric.
func dashboard(t *testing.T, doc string) string {
	t.Helper()
	var panels []object
	y := 0
	for i, o := range overview {
		panels = append(panels, panel("stat", o.title, "", o.unit, object{"h": 4, "w": 4, "x": 4 * i, "y": y},
			target(o.query, "")))
	}
	y += 4
	grouped := make([][][]string, len(sections))
	for _, row := range tableRows(t, doc, "metric", "type", "labels", "of", "what") {
		name := strings.TrimPrefix(strings.Trim(row[0], "`"), "errand_")
		i := slices.IndexFunc(sections, func(s struct {
			title string
			names *regexp.Regexp
		},
		) bool {
			return s.names.MatchString(name)
		})
		grouped[i] = append(grouped[i], row)
	}
	order := append([]int{len(sections) - 1}, 0, 1, 2, 3) // tasks come first
	for _, n := range order {
		panels = append(panels, object{
			"type": "row", "title": sections[n].title, "collapsed": false, "panels": []any{},
			"gridPos": object{"h": 1, "w": 24, "x": 0, "y": y},
		})
		y++
		for i, row := range grouped[n] {
			if i > 0 && i%3 == 0 {
				y += 8
			}
			panels = append(panels, metricPanel(t, row, object{"h": 8, "w": 8, "x": 8 * (i % 3), "y": y}))
		}
		y += 8
	}
	for i := range panels {
		panels[i]["id"] = i + 1
	}
	text, err := json.MarshalIndent(object{
		"title": "errand", "uid": "errand", "description": "Generated from docs/metrics.md.",
		"tags": []string{"errand"}, "schemaVersion": 39, "editable": true, "refresh": "30s",
		"time": object{"from": "now-6h", "to": "now"}, "panels": panels,
		"templating": object{"list": []object{
			{"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus"},
			{
				"type": "custom", "name": "window", "label": "Rates and quantiles over", "query": "5m,15m,1h,6h,1d",
				"current": object{"text": "15m", "value": "15m"},
			},
		}},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// metricPanel returns the panel of a row of the metrics' table. The front doors all report the fleet, so that their
// maximum counts; what processes count themselves is added up.
func metricPanel(t *testing.T, row []string, at object) object {
	t.Helper()
	name, kind, labels, of, what := strings.Trim(row[0], "`"), row[1], row[2], row[3], row[4]
	legend := "{{" + strings.ReplaceAll(labels, ", ", "}} {{") + "}}"
	by := func(f, query, labels string) string {
		if labels == "" {
			return fmt.Sprintf("%s(%s)", f, query)
		}
		return fmt.Sprintf("%s by (%s) (%s)", f, labels, query)
	}
	title := strings.ReplaceAll(strings.TrimPrefix(name, "errand_"), "_", " ")
	unit := "none"
	for suffix, u := range map[string]string{
		"_seconds": "s", "_seconds_total": "s", "_bytes": "bytes", "_usd_total": "currencyUSD",
	} {
		if strings.HasSuffix(name, suffix) {
			unit = u
		}
	}
	if labels == "" {
		legend = title
	}
	var targets []object
	switch {
	case kind == "counter":
		targets = append(targets, target(by("sum", "increase("+name+"[$window])", labels), legend))
		title += " in $window"
	case kind == "histogram":
		for _, q := range []string{"0.5", "0.95"} {
			all := strings.Trim("le, "+labels, ", ")
			targets = append(targets, target("histogram_quantile("+q+", "+
				by("sum", "rate("+name+"_bucket[$window])", all)+")", legend+" "+q))
		}
	case kind == "gauge" && of == "front door":
		targets = append(targets, target(by("max", name, labels), legend))
	case kind == "gauge" && of == "worker" && labels == "":
		targets = append(targets, target(name, "{{instance}}"))
	case kind == "gauge" && of == "both":
		targets = append(targets, target(by("count", name, labels), legend))
	default:
		t.Fatalf("no query for %q", row)
	}
	return panel("timeseries", title, strings.ReplaceAll(what, "`", ""), unit, at, targets...)
}

func panel(kind, title, about, unit string, at object, targets ...object) object {
	for i := range targets {
		targets[i]["refId"] = string(rune('A' + i))
	}
	return object{
		"type": kind, "title": title, "description": about, "gridPos": at, "targets": targets,
		"datasource":  object{"type": "prometheus", "uid": "${datasource}"},
		"fieldConfig": object{"defaults": object{"unit": unit, "min": 0}, "overrides": []any{}},
	}
}

func target(query, legend string) object { return object{"expr": query, "legendFormat": legend} }
