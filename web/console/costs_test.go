package console

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
)

// A row of past days links to the tasks from its last day back, as long as they are kept.
func TestTasksOfACost(t *testing.T) {
	t.Parallel()
	today := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	date := func(d int) time.Time { return today.AddDate(0, 0, -d) }
	for name, test := range map[string]struct {
		first, last int // days ago
		by          []desk.CostGroup
		key         desk.CostKey
		want        string
	}{
		"today": {0, 0, []desk.CostGroup{desk.ByPerson}, desk.CostKey{Person: "p"}, "/?person=p"},
		"a day": {
			9, 0, []desk.CostGroup{desk.ByDay}, desk.CostKey{Day: "2026-03-30"}, "/?before=1774915200000000-all-all",
		},
		"of a person": {
			9, 0,
			[]desk.CostGroup{desk.ByDay, desk.ByPerson},
			desk.CostKey{Day: "2026-03-31", Person: "p"},
			"/?before=1775001600000000-all-all&person=p",
		},
		"long ago":       {9, 0, []desk.CostGroup{desk.ByDay}, desk.CostKey{Day: "2026-03-24"}, ""},
		"all long ago":   {19, 8, []desk.CostGroup{desk.ByPerson}, desk.CostKey{Person: "p"}, ""},
		"without a name": {9, 0, []desk.CostGroup{desk.ByPerson}, desk.CostKey{}, ""},
		"a long name": {
			9, 0, []desk.CostGroup{desk.ByPerson}, desk.CostKey{Person: strings.Repeat("x", 201)}, "",
		},
		"a model": {9, 0, []desk.CostGroup{desk.ByPerson, desk.ByModel}, desk.CostKey{Person: "p", Model: "m"}, ""},
	} {
		q := view.CostsQuery{CostQuery: desk.CostQuery{First: date(test.first), Last: date(test.last), By: test.by}}
		if got := tasksURL(q, test.key, today); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// The page says how much it leaves out.
func TestCostsThatAreNotShown(t *testing.T) {
	t.Parallel()
	found := desk.Costs{Rows: make([]desk.CostRow, 3), More: 2, LeftOut: &desk.CostSum{USD: 3, Runs: 4}}
	found.Rows[0].Other = true
	out, err := respond.New(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b, err := out.Render(t.Context(), "costs", newCostsView(found,
		view.CostsQuery{CostQuery: desk.CostQuery{By: []desk.CostGroup{desk.ByPerson}}}, time.Now()))
	if text := b.String(); err != nil || strings.Count(text, "<i>no person</i>") != 2 ||
		!strings.Contains(text, "<i>other</i>") ||
		!strings.Contains(text, "2 more rows are included in the totals") ||
		!strings.Contains(text, "$3.00 of 4 runs of this period are not included") {
		t.Errorf("got %s", text)
	}
}
