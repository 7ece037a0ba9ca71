package view

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/internal/respond"
)

const (
	Day = 24 * time.Hour
	// DefaultDays is the period of a query that names none.
	DefaultDays = 30
)

// CostsQuery selects costs.
type CostsQuery struct {
	desk.CostQuery
	Days int // the last so many days, today included; 0 for other days
}

// Costs sums up the costs that a query asks for, in at most limit rows; 0 is no limit.
func (v *Reader) Costs(ctx context.Context, query url.Values, limit int) (desk.Costs, CostsQuery, error) {
	q, err := ParseCosts(query, v.Now())
	if err != nil {
		return desk.Costs{}, q, err
	}
	q.Limit = limit
	found, err := v.Desk.Costs(ctx, q.CostQuery)
	return found, q, err
}

// Acceptance returns what people have done with the findings of reviews in a repository, by kind: nothing if the
// visitor does not see its tasks.
func (v *Reader) Acceptance(ctx context.Context, repo string) ([]tasks.Acceptance, error) {
	all := []tasks.Acceptance{}
	if repo == "" || len(repo) > MaxFilter {
		return nil, respond.BadQuery("repository must be the name of a repository, such as acme/api.")
	}
	if !people.VisitorOf(ctx).May(ctx, policy.See, repo).Allowed {
		return all, nil
	}
	for _, source := range v.Reviews {
		some, err := source.Acceptance(ctx, repo)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Filter returns the field that selects one value of a group; nil for days.
func (c *CostsQuery) Filter(group desk.CostGroup) *string { return c.filters()[string(group)] }

func (c *CostsQuery) filters() map[string]*string {
	return map[string]*string{
		string(desk.ByPerson): &c.Person, string(desk.ByChannel): &c.Channel, string(desk.ByRepository): &c.Repo,
		string(desk.ByModel): &c.Model, string(desk.ByCredential): &c.Credential,
	}
}

// ParseCosts reads a query for costs.
func ParseCosts(q url.Values, now time.Time) (CostsQuery, error) {
	var c CostsQuery
	if err := readFilters(q, c.filters()); err != nil {
		return c, err
	}
	for _, by := range q["by"] {
		if !slices.Contains(desk.CostGroups, desk.CostGroup(by)) {
			return c, respond.BadQuery("Costs are grouped by %s.", OneOf(desk.CostGroups))
		}
	}
	for _, group := range desk.CostGroups { // in the order of the columns
		if slices.Contains(q["by"], string(group)) {
			c.By = append(c.By, group)
		}
	}
	if len(c.By) == 0 {
		c.By = []desk.CostGroup{desk.ByDay}
	}
	return c, c.parseDays(q, now.UTC().Truncate(Day))
}

// parseDays reads which days a query is about.
func (c *CostsQuery) parseDays(q url.Values, today time.Time) (err error) {
	oldest := OldestDay(today)
	c.First, c.Last = today.AddDate(0, 0, 1-DefaultDays), today
	if q.Get("from") == "" && q.Get("to") == "" {
		c.Days = DefaultDays
		err = respond.Number(q, "days", store.CostDays, &c.Days)
		c.First = today.AddDate(0, 0, 1-c.Days)
		return err
	}
	for name, day := range map[string]*time.Time{"from": &c.First, "to": &c.Last} {
		if text := q.Get(name); text != "" {
			if *day, err = time.Parse(time.DateOnly, text); err != nil {
				return respond.BadQuery("from and to must be dates such as 2026-01-31.")
			}
		}
	}
	if c.Last.After(today) {
		c.Last = today
	}
	if q.Get("from") == "" {
		if c.First = c.Last.AddDate(0, 0, 1-DefaultDays); c.First.Before(oldest) {
			c.First = oldest
		}
	}
	switch {
	case q.Get("days") != "":
		return respond.BadQuery("Use either days, or from and to.")
	case c.First.Before(oldest):
		return respond.BadQuery("Costs are kept for %d days, now since %s.", store.CostDays,
			oldest.Format(time.DateOnly))
	case c.First.After(c.Last):
		return respond.BadQuery("There are no days from %s to %s.", c.First.Format(time.DateOnly),
			c.Last.Format(time.DateOnly))
	}
	return nil
}

// Values returns the query as URL parameters: the inverse of ParseCosts.
func (c CostsQuery) Values() url.Values {
	q := filterValues(c.filters())
	if !slices.Equal(c.By, []desk.CostGroup{desk.ByDay}) {
		q["by"] = Strings(c.By)
	}
	switch c.Days {
	case 0:
		q.Set("from", c.First.Format(time.DateOnly))
		q.Set("to", c.Last.Format(time.DateOnly))
	case DefaultDays:
	default:
		q.Set("days", strconv.Itoa(c.Days))
	}
	return q
}

// OldestDay returns the first day that costs are kept for.
func OldestDay(today time.Time) time.Time { return today.AddDate(0, 0, 1-store.CostDays) }
