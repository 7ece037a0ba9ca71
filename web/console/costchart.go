package console

import (
	"cmp"
	"context"
	"html/template"
	"maps"
	"slices"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/chart"
	"github.com/errand-fleet/errand/web/internal/view"
)

// costSeries are the classes of the series of a chart, the most expensive first. The last is for all others.
var costSeries = []string{"cost", "second", "third", "fourth", "fifth", "stopped"}

// costChart draws the costs by day. Costs that are grouped otherwise are stacked by their first group: the five most
// expensive names and the rest. There is no chart of a single day, or of no costs.
func (c *Console) costChart(ctx context.Context, q view.CostsQuery, found tasks.Costs) (template.HTML, error) {
	if !q.First.Before(q.Last) || found.Total.USD == 0 {
		return "", nil
	}
	group := tasks.ByDay
	for _, by := range q.By {
		if by != tasks.ByDay {
			group = by
			break
		}
	}
	daily := q.CostQuery
	daily.By, daily.Limit = slices.Compact([]tasks.CostGroup{tasks.ByDay, group}), 0
	if !slices.Equal(daily.By, q.By) || found.More > 0 {
		var err error
		if found, err = c.view.Desk.Costs(ctx, daily); err != nil {
			return "", err
		}
	}
	return newCostChart(q, group, found.Rows).HTML()
}

// newCostChart returns the chart of rows that are grouped by day and by one group at most.
func newCostChart(q view.CostsQuery, group tasks.CostGroup, rows []tasks.CostRow) chart.Bars {
	bars := chart.Bars{ID: "by-day", Title: "Cost by day", Column: "Day", Format: legible.Dollars}
	if group != tasks.ByDay {
		bars.Title += " and " + string(group)
	}
	name := func(row tasks.CostRow) string {
		switch {
		case group == tasks.ByDay:
			return "cost"
		case row.Other:
			return "other"
		}
		return cmp.Or(row.Name(group), "no "+string(group))
	}
	totals := map[string]float64{}
	for _, row := range rows {
		totals[name(row)] += row.USD
	}
	series := map[string]int{}
	for i, n := range slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(a, b))
	}) {
		series[n] = min(i, len(costSeries)-1)
		if i == len(costSeries)-1 {
			n = "all others"
		}
		if i < len(costSeries) {
			bars.Series = append(bars.Series, chart.Series{Name: legible.Text(n), Class: costSeries[i]})
		}
	}
	days := map[string][]float64{}
	for _, row := range rows {
		if days[row.Day] == nil {
			days[row.Day] = make([]float64, len(bars.Series))
		}
		days[row.Day][series[name(row)]] += row.USD
	}
	for d := q.First; !d.After(q.Last); d = d.Add(view.Day) {
		day := d.Format(time.DateOnly)
		values := days[day]
		if values == nil {
			values = make([]float64, len(bars.Series))
		}
		bars.Bars = append(bars.Bars, chart.Bar{
			Label: day, Tick: d.Format("2 Jan"), URL: costsURL(narrowed(q, tasks.ByDay, day)), Values: values,
		})
	}
	return bars
}
