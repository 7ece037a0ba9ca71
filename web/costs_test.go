package web

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/web/api"
)

// spend submits the n-th task and records the cost of a run.
func (h *harness) spend(n int, model string, usd float64, change func(*tasks.Task)) {
	h.Helper()
	id := h.submit(n, func(t *tasks.Task) { t.Thread = t.ID }, change)
	e := store.Expense{
		USD: usd, Model: model, Tokens: store.Tokens{
			Input: 1000, Output: 200, CacheRead: 30_000, CacheCreation: 4,
		},
	}
	if _, err := h.Claim(id).Spend(h.Context(), e); err != nil {
		h.Fatal(err)
	}
}

// settled returns a console with the costs of some runs, whose names try to inject markup and formulas.
func settled(t *testing.T) *harness {
	t.Helper()
	h := atMidday(t)
	h.spend(1, "opus", 1.25, func(t *tasks.Task) { t.Repo, t.Channel = "Acme/API", "C1" })
	h.spend(2, "haiku", 0.001, func(t *tasks.Task) { t.Repo, t.Channel = "acme/api", "C1" })
	h.spend(3, `=cmd|'/c-calc'!A1`, 2, func(t *tasks.Task) { t.Actor, t.Repo = `<script>alert(1)</script>"`, "" })
	return h
}

func TestCostsAPI(t *testing.T) {
	t.Parallel()
	h := settled(t)
	var c api.Costs
	h.into(h.get("/api/costs?by=repository&by=model"), http.StatusOK, &c)
	usage := agent.Usage{Input: 1000, Output: 200, CacheRead: 30_000, CacheCreation: 4}
	want := desk.Costs{
		Rows: []desk.CostRow{
			{CostKey: desk.CostKey{Model: "=cmd|'/c-calc'!A1"}, CostSum: desk.CostSum{USD: 2, Runs: 1, Usage: usage}},
			{
				CostKey: desk.CostKey{Repo: "acme/api", Model: "opus"},
				CostSum: desk.CostSum{USD: 1.25, Runs: 1, Usage: usage},
			},
			{
				CostKey: desk.CostKey{Repo: "acme/api", Model: "haiku"},
				CostSum: desk.CostSum{USD: 0.001, Runs: 1, Usage: usage},
			},
		},
		Total: desk.CostSum{USD: 3.251, Runs: 3, Usage: agent.Usage{
			Input: 3000, Output: 600, CacheRead: 90_000, CacheCreation: 12,
		}},
	}
	if diff := cmp.Diff(want, c.Costs); diff != "" {
		t.Error(diff)
	}
	if len(c.By) != 2 || c.To != h.config.now().UTC().Format(time.DateOnly) {
		t.Errorf("by %v until %s", c.By, c.To)
	}
	if a := h.get("/api/costs?person=nobody"); !strings.Contains(a.text, `"rows": []`) {
		t.Errorf("an empty list is %s", a.text)
	}
	for _, query := range []string{
		"by=who", "by=", "days=0", "days=91", "days=x", "from=x", "to=2026-13-01", "from=2020-01-01", "from=9999-01-01",
		"to=2020-01-01", "days=7&from=" + c.From, "format=xml", "person=" + strings.Repeat("x", 201),
	} {
		h.problem(h.get("/api/costs?"+query), http.StatusBadRequest)
	}
	h.contains(h.get("/costs?days=x", "Accept", "text/html"), http.StatusBadRequest,
		"days must be a number from 1 to 90.")
	_ = h.redis.Close()
	h.problem(h.get("/api/costs"), http.StatusServiceUnavailable)
}

// A spreadsheet that opens the file computes no formulas.
func TestCostsCSV(t *testing.T) {
	t.Parallel()
	h := settled(t)
	a := h.get("/api/costs?format=csv&by=person&by=model")
	h.contains(a, http.StatusOK)
	got, err := csv.NewReader(strings.NewReader(a.text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{
			"person", "model", "cost_usd", "runs", "input_tokens", "output_tokens", "cache_read_input_tokens",
			"cache_creation_input_tokens",
		},
		{`test/<script>alert(1)</script>"`, `'=cmd|'/c-calc'!A1`, "2", "1", "1000", "200", "30000", "4"},
		{"test/ann", "opus", "1.25", "1", "1000", "200", "30000", "4"},
		{"test/ann", "haiku", "0.001", "1", "1000", "200", "30000", "4"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if kind, name := a.Header.Get("Content-Type"),
		a.Header.Get("Content-Disposition"); kind != "text/csv; charset=utf-8" ||
		!strings.HasPrefix(name, `attachment; filename="costs-2`) || !strings.HasSuffix(name, `.csv"`) {
		t.Errorf("headers: %s, %s", kind, name)
	}
}
