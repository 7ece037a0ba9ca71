package desk

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/internal/scope"
	"github.com/errand-fleet/errand/tasks/people"
)

// CostGroup is a property by which costs are grouped.
type CostGroup string

// The groups. A run counts on the day (UTC, by Redis' clock) when it is settled; for its task's asker, channel and
// repository; for its main model; and for the names of the model's credentials that it used, as far as they have any.
const (
	ByDay        CostGroup = "day"
	ByPerson     CostGroup = "person"
	ByChannel    CostGroup = "channel"
	ByRepository CostGroup = "repository"
	ByModel      CostGroup = "model"
	ByCredential CostGroup = "credential"
)

// CostGroups lists all groups.
var CostGroups = []CostGroup{ByDay, ByPerson, ByChannel, ByRepository, ByModel, ByCredential}

// CostQuery selects the costs to sum up. Names are those of a [CostKey]; people and channels can be named without
// their source.
type CostQuery struct {
	First, Last time.Time   // days in UTC, inclusive; see [store.CostDays]
	By          []CostGroup // empty: everything in one row

	Person, Channel, Repo, Model, Credential string // filters; empty: any

	Limit int // maximum number of rows; 0: no limit
}

// CostKey identifies a row by the properties in CostQuery.By. The others are empty, as is a property that the runs do
// not have.
type CostKey struct {
	Day     string `json:"day,omitempty"`    // 2006-01-02
	Person  string `json:"person,omitempty"` // their name in People, or source and account, such as slack/U02ABC
	Channel string `json:"channel,omitempty"`
	Repo    string `json:"repository,omitempty"` // in lower case
	Model   string `json:"model,omitempty"`

	Credential string `json:"credential,omitempty"` // its name in errand.yaml

	Other bool `json:"other,omitempty"` // runs of which only the day is known, because that day had too many kinds
}

// CostSum is the total of several runs.
type CostSum struct {
	USD   float64     `json:"cost_usd"`
	Runs  int64       `json:"runs"`
	Usage agent.Usage `json:"usage"`
}

// CostRow is one row of the table.
type CostRow struct {
	CostKey
	CostSum
}

// Costs is a table of costs: newest days first, and within a day the highest cost first.
type Costs struct {
	Rows    []CostRow `json:"rows"`
	More    int       `json:"more,omitempty"`     // rows beyond the limit
	Total   CostSum   `json:"total"`              // of all rows
	LeftOut *CostSum  `json:"left_out,omitempty"` // runs in those days that may or may not match the query
}

// Costs sums up the cost of runs. The cost of an absorbed task counts for the task whose run absorbed it. Runs that
// died with their worker are in no row.
func (d *Desk) Costs(ctx context.Context, q CostQuery) (Costs, error) {
	sums := map[CostKey]*CostSum{}
	var total, left CostSum
	people := d.policy.People
	persons, sees := people.Filter(q.Person), people.Visible(ctx)
	for c, err := range d.store.Costs.Days(ctx, q.First, q.Last) {
		switch {
		case err != nil:
			return Costs{}, err
		case sees != nil && (c.Other || !sees(c.Scopes)): // the visitor may not see it
		case c.Other && q.filtered():
			left.add(c)
		case c.Other || q.wants(c, persons):
			key := q.key(c, people)
			if sums[key] == nil {
				sums[key] = &CostSum{}
			}
			sums[key].add(c)
			total.add(c)
		}
	}
	found := Costs{Rows: make([]CostRow, 0, len(sums)), Total: total.whole()}
	for key, sum := range sums {
		found.Rows = append(found.Rows, CostRow{CostKey: key, CostSum: sum.whole()})
	}
	if left.Runs > 0 {
		left = left.whole()
		found.LeftOut = &left
	}
	slices.SortFunc(found.Rows, func(a, b CostRow) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.USD, a.USD),
			cmp.Compare(b.Runs, a.Runs), a.compare(b.CostKey))
	})
	if q.Limit > 0 && len(found.Rows) > q.Limit {
		found.Rows, found.More = found.Rows[:q.Limit], len(found.Rows)-q.Limit
	}
	return found, nil
}

// Affords returns an *InputError if one of today's budgets is used up in which a task would count. So does Submit, but
// not for a task that is unattended.
func (d *Desk) Affords(ctx context.Context, t tasks.Task) error {
	return d.refused(d.store.Costs.Afford(ctx, d.policy.People.Scopes(t), d.policy.Budgets.Daily()...))
}

// refused returns an *InputError for an error that says that a budget is used up, and any other error as it is.
func (d *Desk) refused(err error) error {
	if over, ok := errors.AsType[*store.OverBudget](err); ok {
		return d.policy.Budgets.Refusal(over)
	}
	return err
}

func (q CostQuery) filtered() bool { return q.Person+q.Channel+q.Repo+q.Model+q.Credential != "" }

func (q CostQuery) wants(c store.Cost, persons []string) bool {
	return scope.Within(c.Scopes, q.Repo, persons, q.Channel) &&
		(q.Model == "" || strings.EqualFold(c.Model, q.Model)) &&
		(q.Credential == "" || scope.Name(c.Scopes, store.CredentialScope) == q.Credential)
}

// key returns the row that a cost belongs to. The accounts of one person share a row.
func (q CostQuery) key(c store.Cost, people people.People) CostKey {
	k := CostKey{
		Day: c.Day.Format(time.DateOnly), Person: people.Named(scope.Name(c.Scopes, scope.User)),
		Channel: scope.Name(c.Scopes, scope.Channel), Repo: scope.Name(c.Scopes, scope.Repository), Model: c.Model,
		Credential: scope.Name(c.Scopes, store.CredentialScope),
	}
	for i, field := range k.fields() {
		if !slices.Contains(q.By, CostGroups[i]) {
			*field = ""
		}
	}
	k.Other = c.Other && slices.ContainsFunc(q.By, func(g CostGroup) bool { return g != ByDay })
	return k
}

// fields returns the properties of a row in the order of CostGroups.
func (k *CostKey) fields() []*string {
	return []*string{&k.Day, &k.Person, &k.Channel, &k.Repo, &k.Model, &k.Credential}
}

// Name returns the row's value for one of the CostGroups.
func (k CostKey) Name(group CostGroup) string { return *k.fields()[slices.Index(CostGroups, group)] }

func (k CostKey) compare(l CostKey) int {
	return slices.CompareFunc(k.fields(), l.fields(), func(a, b *string) int { return cmp.Compare(*a, *b) })
}

func (s *CostSum) add(c store.Cost) {
	s.USD += c.USD
	s.Runs += c.Runs
	s.Usage.Input += c.Input
	s.Usage.Output += c.Output
	s.Usage.CacheRead += c.CacheRead
	s.Usage.CacheCreation += c.CacheCreation
}

// whole rounds the sum.
func (s CostSum) whole() CostSum {
	s.USD = format.WholeUSD(s.USD)
	return s
}
