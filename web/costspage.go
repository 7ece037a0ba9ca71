package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// taskDays is for how long tasks are kept after their end.
const taskDays = 7 * day

// costsView is the page of costs.
type costsView struct {
	Query       costsQuery
	First, Last string
	Periods, By []choice
	Groups      []costGroup // to choose several of
	Columns     []string
	Rows        []costLine
	Total       costFigures
	More        int          // rows that are not shown
	LeftOut     *costFigures // of what nobody knows whether it was asked for
	Filters     []costFilter
	Unfiltered  string // the URL without them
	API, CSV    string // the URLs of the same
	Oldest      string // the first day of which there are costs
	Today       string
}

// costGroup is a group to tick.
type costGroup struct {
	Name   tasks.CostGroup
	Ticked bool
}

// costFilter is one that is set.
type costFilter struct{ Name, Value string }

// costLine is a row, in words.
type costLine struct {
	Names []costName
	costFigures
	Share string // of the dearest row, as a number up to 1
	Tasks string // the URL of the list of its tasks; empty: nothing filters like this
}

// costName is what the runs of a row have in common.
type costName struct {
	Text  string
	URL   string // of the costs of it alone, where it is not too long to filter by
	Known bool   // it is a name
}

// costFigures are sums, in words.
type costFigures struct{ Cost, Runs, In, Out string }

func (h *Handler) costsPage(w http.ResponseWriter, r *http.Request) {
	if found, q, ok := h.sum(w, r, costPageRows); ok {
		h.page(w, http.StatusOK, "costs", newCostsView(found, q, h.now().UTC().Truncate(day)))
	}
}

func newCostsView(found tasks.Costs, q costsQuery, today time.Time) costsView {
	v := costsView{
		Query: q, First: q.First.Format(time.DateOnly), Last: q.Last.Format(time.DateOnly), Columns: words(q.By),
		Total: figures(found.Total), More: found.More,
		Oldest: oldestDay(today).Format(time.DateOnly), Today: today.Format(time.DateOnly),
		Unfiltered: q.url(func(q *costsQuery) { q.Person, q.Channel, q.Repo, q.Model = "", "", "", "" }),
	}
	for _, n := range []int{1, 7, defaultDays, 90} {
		label := fmt.Sprintf("%d days", n)
		if n == 1 {
			label = "today"
		}
		v.Periods = append(v.Periods, choice{label, q.url(func(q *costsQuery) { q.Days = n }), n == q.Days})
	}
	for _, group := range tasks.CostGroups {
		only := []tasks.CostGroup{group}
		v.By = append(v.By, choice{string(group), q.url(func(q *costsQuery) { q.By = only }), slices.Equal(q.By, only)})
		v.Groups = append(v.Groups, costGroup{group, slices.Contains(q.By, group)})
	}
	for _, f := range []costFilter{{"person", q.Person}, {"channel", q.Channel}, {"repository", q.Repo}, {"model", q.Model}} {
		if f.Value != "" {
			v.Filters = append(v.Filters, f)
		}
	}
	if found.LeftOut != nil {
		left := figures(*found.LeftOut)
		v.LeftOut = &left
	}
	dearest := 0.0
	for _, row := range found.Rows {
		dearest = max(dearest, row.USD)
	}
	for _, row := range found.Rows {
		v.Rows = append(v.Rows, q.line(row, dearest, today))
	}
	query := q.values()
	v.API = "/api/costs?" + query.Encode()
	query.Set("format", "csv")
	v.CSV = "/api/costs?" + query.Encode()
	return v
}

// line is a row in words.
func (c costsQuery) line(row tasks.CostRow, dearest float64, today time.Time) costLine {
	l := costLine{costFigures: figures(row.CostSum), Tasks: c.tasksURL(row.CostKey, today)}
	if dearest > 0 {
		l.Share = strconv.FormatFloat(row.USD/dearest, 'f', 3, 64)
	}
	for _, group := range c.By {
		name := costName{Text: row.Name(group), Known: true}
		switch {
		case row.Other && group != tasks.ByDay:
			name = costName{Text: "other"}
		case name.Text == "":
			name = costName{Text: "no " + string(group)}
		case len(name.Text) <= maxFilter:
			name.URL = c.within(group, name.Text).url()
		}
		name.Text = legible.Text(name.Text)
		l.Names = append(l.Names, name)
	}
	return l
}

// within is the query for what a row has in common, told apart by something else.
func (c costsQuery) within(group tasks.CostGroup, name string) costsQuery {
	c.By = []tasks.CostGroup{tasks.ByDay}
	switch group {
	case tasks.ByDay:
		if d, err := time.Parse(time.DateOnly, name); err == nil {
			c.First, c.Last, c.Days = d, d, 0
		}
		c.By = []tasks.CostGroup{tasks.ByPerson}
	case tasks.ByPerson:
		c.Person = name
	case tasks.ByChannel:
		c.Channel = name
	case tasks.ByRepository:
		c.Repo = name
	case tasks.ByModel:
		c.Model = name
	}
	return c
}

// tasksURL lists the tasks of a row, from its last day back; empty where the list cannot be filtered like this, or has forgotten them.
func (c costsQuery) tasksURL(key tasks.CostKey, today time.Time) string {
	for _, group := range c.By {
		name := key.Name(group)
		if name == "" || len(name) > maxFilter || group == tasks.ByModel {
			return ""
		}
		c = c.within(group, name)
	}
	if c.Model != "" || today.Sub(c.Last) > taskDays {
		return ""
	}
	to := values(tasks.Filter{Person: c.Person, Channel: c.Channel, Repo: c.Repo, Limit: defaultList})
	if c.Last.Before(today) {
		to.Set("before", tasks.NewID(c.Last.Add(day), "all", "all"))
	}
	return "/?" + to.Encode()
}

func figures(s tasks.CostSum) costFigures {
	u := s.Usage
	return costFigures{money(s.USD), strconv.FormatInt(s.Runs, 10), legible.Count(u.Input + u.CacheRead + u.CacheCreation), legible.Count(u.Output)}
}

// money is an amount as one reads it in a table.
func money(usd float64) string {
	if usd > 0 && usd < 0.005 {
		return "< $0.01"
	}
	return fmt.Sprintf("$%.2f", usd)
}
