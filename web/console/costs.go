package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/web/internal/view"
)

const (
	costRows = 300          // rows on the page; the CSV file has all
	taskAge  = 7 * view.Day // how long tasks are kept after they end
)

// costsView is the page of costs.
type costsView struct {
	Query       view.CostsQuery
	Periods, By []choice
	Rows        []costLine
	Total       costFigures
	More        int          // rows that are not shown
	LeftOut     *costFigures // runs that the filter cannot be applied to
	Filters     map[string]string
	Unfiltered  string // the URL without filters
	API, CSV    string // URLs of the same costs
	Oldest      string // the first day that costs are kept for
	Today       string
}

// First and Last return the days of the query.
func (v costsView) First() string { return v.Query.First.Format(time.DateOnly) }
func (v costsView) Last() string  { return v.Query.Last.Format(time.DateOnly) }

// costLine is a row, formatted.
type costLine struct {
	Names []costName
	costFigures
	Share string // the part of the most expensive row's cost, a number up to 1
	Tasks string // the URL of its tasks; empty if no filter of the list selects them
}

// costName is a row's value of a column.
type costName struct {
	Text  string
	URL   string // its costs alone; empty if it is too long to filter by
	Known bool   // it is a name, and not "other" or "no repository"
}

// costFigures are sums, formatted.
type costFigures struct{ Cost, Runs, In, Out string }

func (c *Console) costsPage(w http.ResponseWriter, r *http.Request) error {
	found, q, err := c.View.Costs(r.Context(), r.URL.Query(), costRows)
	if err != nil {
		return err
	}
	return c.Out.Page(w, r, http.StatusOK, "costs", newCostsView(found, q, c.View.Now().UTC().Truncate(view.Day)))
}

// share returns a part of the highest amount, as a number up to 1; empty if that is 0.
func share(part, highest float64) string {
	if highest == 0 {
		return ""
	}
	return strconv.FormatFloat(part/highest, 'f', 3, 64)
}

func newCostsView(found desk.Costs, q view.CostsQuery, today time.Time) costsView {
	v := costsView{
		Query: q, Total: newCostFigures(found.Total), More: found.More, Filters: map[string]string{},
		Oldest: view.OldestDay(today).Format(time.DateOnly), Today: today.Format(time.DateOnly),
		Unfiltered: costsURL(q, func(q *view.CostsQuery) {
			q.Person, q.Channel, q.Repo, q.Model, q.Credential = "", "", "", "", ""
		}),
	}
	for _, n := range []int{1, 7, view.DefaultDays, 90} {
		label := fmt.Sprintf("%d days", n)
		if n == 1 {
			label = "today"
		}
		v.Periods = append(v.Periods, choice{label, costsURL(q, func(q *view.CostsQuery) { q.Days = n }), n == q.Days})
	}
	for _, group := range desk.CostGroups {
		only := costsURL(q, func(q *view.CostsQuery) { q.By = []desk.CostGroup{group} })
		v.By = append(v.By, choice{string(group), only, slices.Contains(q.By, group)})
	}
	for _, group := range desk.CostGroups {
		if field := q.Filter(group); field != nil && *field != "" {
			v.Filters[string(group)] = *field
		}
	}
	if found.LeftOut != nil {
		left := newCostFigures(*found.LeftOut)
		v.LeftOut = &left
	}
	highest := 0.0
	for _, row := range found.Rows {
		highest = max(highest, row.USD)
	}
	for _, row := range found.Rows {
		v.Rows = append(v.Rows, newCostLine(q, row, highest, today))
	}
	query := q.Values()
	v.API = "/api/costs?" + query.Encode()
	query.Set("format", "csv")
	v.CSV = "/api/costs?" + query.Encode()
	return v
}

func newCostLine(q view.CostsQuery, row desk.CostRow, highest float64, today time.Time) costLine {
	l := costLine{
		costFigures: newCostFigures(row.CostSum), Tasks: tasksURL(q, row.CostKey, today),
		Share: share(row.USD, highest),
	}
	for _, group := range q.By {
		name := costName{Text: row.Name(group), Known: true}
		switch {
		case row.Other && group != desk.ByDay:
			name = costName{Text: "other"}
		case name.Text == "":
			name = costName{Text: "no " + string(group)}
		case len(name.Text) <= view.MaxFilter:
			name.URL = costsURL(narrowed(q, group, name.Text))
		}
		name.Text = display.Text(name.Text)
		l.Names = append(l.Names, name)
	}
	return l
}

// narrowed returns the query for one value of a group, grouped by day or, for one day, by person.
func narrowed(q view.CostsQuery, group desk.CostGroup, name string) view.CostsQuery {
	if field := q.Filter(group); field != nil {
		*field, q.By = name, []desk.CostGroup{desk.ByDay}
		return q
	}
	if d, err := time.Parse(time.DateOnly, name); err == nil {
		q.First, q.Last, q.Days = d, d, 0
	}
	q.By = []desk.CostGroup{desk.ByPerson}
	return q
}

// tasksURL returns the list of a row's tasks, from its last day back. It returns "" if the list cannot be filtered like
// this, or if the tasks have been deleted.
func tasksURL(q view.CostsQuery, key desk.CostKey, today time.Time) string {
	for _, group := range q.By {
		name := key.Name(group)
		if name == "" || len(name) > view.MaxFilter ||
			slices.Contains([]desk.CostGroup{desk.ByModel, desk.ByCredential}, group) {
			return ""
		}
		q = narrowed(q, group, name)
	}
	if q.Model+q.Credential != "" || today.Sub(q.Last) > taskAge {
		return ""
	}
	to := view.FilterValues(desk.Filter{Person: q.Person, Channel: q.Channel, Repo: q.Repo, Limit: view.DefaultList})
	if q.Last.Before(today) {
		to.Set("before", tasks.NewID(q.Last.Add(view.Day), "all", "all"))
	}
	return "/?" + to.Encode()
}

// costsURL returns the page of a changed query.
func costsURL(q view.CostsQuery, change ...func(*view.CostsQuery)) string {
	for _, apply := range change {
		apply(&q)
	}
	to := url.URL{Path: "/costs", RawQuery: q.Values().Encode()}
	return to.String()
}

func newCostFigures(s desk.CostSum) costFigures {
	u := s.Usage
	return costFigures{
		display.Dollars(s.USD), strconv.FormatInt(s.Runs, 10),
		display.Count(u.Input + u.CacheRead + u.CacheCreation), display.Count(u.Output),
	}
}
