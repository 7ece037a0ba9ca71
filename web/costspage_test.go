package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

func TestCostsPage(t *testing.T) {
	t.Parallel()
	h := settled(t)
	h.contains(h.get("/costs"), http.StatusOK, `<a href="/costs" aria-current="page">Costs</a>`, "<b>$3.25</b>", "<b>3</b> runs", "to today",
		`<a href="/costs?by=person">person</a>`, `aria-current="page">30 days</a>`, `<a href="/costs?days=7">7 days</a>`,
		`href="/api/costs?format=csv"`, "93.0k", ">600<", "!costs several", "!<script")
	h.contains(h.get("/costs?by=person"), http.StatusOK, "<b>$3.25</b>",
		`<a href="/costs?person=test%2Fann">test/ann</a>`, "&lt;script&gt;alert(1)&lt;/script&gt;&#34;", "!<script", `<a href="/?person=test%2Fann">tasks</a>`)
	h.contains(h.get("/costs?by=repository"), http.StatusOK, "<i>no repository</i>", `<a href="/?repository=acme%2Fapi">tasks</a>`)
	h.contains(h.get("/costs?by=channel&days=7&person=ann"), http.StatusOK, "person <b>ann</b>", "<b>2</b> runs", "!no channel",
		`<a href="/?channel=test%2FC1&amp;person=ann">tasks</a>`, `<a href="/costs?by=channel&amp;days=7">clear</a>`, `name="person" value="ann"`)
	h.contains(h.get("/costs?by=model"), http.StatusOK, "&lt; $0.01", "!>tasks</a>")
	h.contains(h.get("/costs?by=day&by=person&by=model&model=opus"), http.StatusOK, "costs several", "<b>1</b> run<", `value="model" checked`, "!>tasks</a>")
	h.contains(h.get("/costs?person=nobody"), http.StatusOK, "No run was settled in these days for this.", "!<table")

	// The list leads here, and its tasks are those of a channel.
	h.contains(h.get("/"), http.StatusOK, `<a href="/costs?by=person&amp;days=1"><b>$3.25</b> today</a>`)
	h.contains(h.get("/?channel=test/C1"), http.StatusOK, `name="channel" value="test/C1"`, "<details open>", "!&lt;script")
}

// The tasks of days that are over are those from the last of them back, while there still are any.
func TestTasksOfACost(t *testing.T) {
	t.Parallel()
	today := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	date := func(d int) time.Time { return today.AddDate(0, 0, -d) }
	for name, test := range map[string]struct {
		first, last int // days ago
		by          []tasks.CostGroup
		key         tasks.CostKey
		want        string
	}{
		"today":          {0, 0, []tasks.CostGroup{tasks.ByPerson}, tasks.CostKey{Person: "p"}, "/?person=p"},
		"a day":          {9, 0, []tasks.CostGroup{tasks.ByDay}, tasks.CostKey{Day: "2026-03-30"}, "/?before=1774915200000000-all-all"},
		"of a person":    {9, 0, []tasks.CostGroup{tasks.ByDay, tasks.ByPerson}, tasks.CostKey{Day: "2026-03-31", Person: "p"}, "/?before=1775001600000000-all-all&person=p"},
		"long ago":       {9, 0, []tasks.CostGroup{tasks.ByDay}, tasks.CostKey{Day: "2026-03-24"}, ""},
		"all long ago":   {19, 8, []tasks.CostGroup{tasks.ByPerson}, tasks.CostKey{Person: "p"}, ""},
		"without a name": {9, 0, []tasks.CostGroup{tasks.ByPerson}, tasks.CostKey{}, ""},
		"a long name":    {9, 0, []tasks.CostGroup{tasks.ByPerson}, tasks.CostKey{Person: strings.Repeat("x", 201)}, ""},
		"a model":        {9, 0, []tasks.CostGroup{tasks.ByPerson, tasks.ByModel}, tasks.CostKey{Person: "p", Model: "m"}, ""},
	} {
		q := costsQuery{CostQuery: tasks.CostQuery{First: date(test.first), Last: date(test.last), By: test.by}}
		if got := q.tasksURL(test.key, today); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// What is not on the page is said.
func TestCostsThatAreNotShown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	found := tasks.Costs{Rows: make([]tasks.CostRow, 3), More: 2, LeftOut: &tasks.CostSum{USD: 3, Runs: 4}}
	found.Rows[0].Other = true
	b, ok := h.handler.render(nil, "costs", newCostsView(found, costsQuery{CostQuery: tasks.CostQuery{By: []tasks.CostGroup{tasks.ByPerson}}}, time.Now()))
	if text := b.String(); !ok || strings.Count(text, "<i>no person</i>") != 2 || !strings.Contains(text, "<i>other</i>") ||
		!strings.Contains(text, "2 more rows are in the sums") || !strings.Contains(text, "$3.00 of 4 runs of these days are not in here") {
		t.Errorf("got %s", text)
	}
}
