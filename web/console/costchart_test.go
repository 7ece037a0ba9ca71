package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/chart"
	"github.com/errand-fleet/errand/web/internal/view"
)

// The chart has a bar for each day, also without costs, and parts for the five most expensive names and the rest.
func TestCostChart(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	q := view.CostsQuery{CostQuery: tasks.CostQuery{
		First: day, Last: day.AddDate(0, 0, 2), By: []tasks.CostGroup{tasks.ByModel},
	}}
	row := func(day, model string, usd float64) tasks.CostRow {
		return tasks.CostRow{CostKey: tasks.CostKey{Day: day, Model: model}, CostSum: tasks.CostSum{USD: usd}}
	}
	rows := []tasks.CostRow{row("2026-03-03", "m1", 9), row("2026-03-03", "", 1), row("2026-03-01", "m1", 1)}
	for i := 2; i < 8; i++ {
		rows = append(rows, row("2026-03-01", fmt.Sprint("m", i), float64(9-i)))
	}
	c := newCostChart(q, tasks.ByModel, rows)
	want := []chart.Series{
		{Name: "m1", Class: "cost"},
		{Name: "m2", Class: "second"},
		{Name: "m3", Class: "third"},
		{Name: "m4", Class: "fourth"},
		{Name: "m5", Class: "fifth"},
		{Name: "all others", Class: "stopped"},
	}
	if diff := cmp.Diff(want, c.Series); diff != "" {
		t.Error(diff)
	}
	var values [][]float64
	for _, b := range c.Bars {
		values = append(values, b.Values)
	}
	if diff := cmp.Diff([][]float64{{1, 7, 6, 5, 4, 5}, {0, 0, 0, 0, 0, 0}, {9, 0, 0, 0, 0, 1}}, values); diff != "" {
		t.Error(diff)
	}
	if b := c.Bars[1]; b.Label != "2026-03-02" || b.Tick != "2 Mar" ||
		b.URL != "/costs?by=person&from=2026-03-02&to=2026-03-02" {
		t.Errorf("%+v", b)
	}
	if got := newCostChart(q, tasks.ByDay, []tasks.CostRow{row("2026-03-03", "", 2)}).Series; len(got) != 1 ||
		got[0].Class != "cost" {
		t.Errorf("ungrouped: %+v", got)
	}
}
