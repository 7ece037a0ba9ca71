package tasks

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// CostGroup is by what costs are told apart.
type CostGroup string

// The groups. A run counts on the day it is settled, by Redis' clock, UTC; for who asked for the task, where, about what repository; and
// with its main model.
const (
	ByDay        CostGroup = "day"
	ByPerson     CostGroup = "person"
	ByChannel    CostGroup = "channel"
	ByRepository CostGroup = "repository"
	ByModel      CostGroup = "model"
)

// CostGroups lists them.
var CostGroups = []CostGroup{ByDay, ByPerson, ByChannel, ByRepository, ByModel}

// CostQuery says which costs to sum up. Names are those of a [CostKey]; of people and channels what stands behind the source is enough.
type CostQuery struct {
	First, Last time.Time   // days, UTC, both included; see [store.CostDays]
	By          []CostGroup // none: all in one row

	Person, Channel, Repo, Model string // only of these; empty: of any

	Limit int // of rows; 0: none
}

// CostKey is what the runs of a row have in common: of what they are told apart by. Empty: nothing of the kind.
type CostKey struct {
	Day     string `json:"day,omitempty"`    // 2006-01-02
	Person  string `json:"person,omitempty"` // by their name in People, or with the source in front: slack/U02ABC
	Channel string `json:"channel,omitempty"`
	Repo    string `json:"repository,omitempty"` // in lower case
	Model   string `json:"model,omitempty"`
	Other   bool   `json:"other,omitempty"` // runs of which nobody knows more than the day, because that day had too many kinds
}

// CostSum is what runs came to.
type CostSum struct {
	USD   float64     `json:"cost_usd"`
	Runs  int64       `json:"runs"`
	Usage agent.Usage `json:"usage"`
}

// CostRow is a line of the table.
type CostRow struct {
	CostKey
	CostSum
}

// Costs is the table: newest days first, and of a day what cost most.
type Costs struct {
	Rows    []CostRow `json:"rows"`
	More    int       `json:"more,omitempty"`     // rows beyond the limit
	Total   CostSum   `json:"total"`              // of all rows
	LeftOut *CostSum  `json:"left_out,omitempty"` // runs of those days of which nobody knows whether they were asked for
}

// Costs sums up what runs have cost. Runs of an absorbed task are those of the task whose run has taken it up; those that were lost with
// their worker are in no row.
func (d *Desk) Costs(ctx context.Context, q CostQuery) (Costs, error) {
	sums := map[CostKey]*CostSum{}
	var total, left CostSum
	people := d.policy.People
	persons := people.filter(q.Person)
	for c, err := range d.store.Costs.Days(ctx, q.First, q.Last) {
		switch {
		case err != nil:
			return Costs{}, err
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
		found.Rows = append(found.Rows, CostRow{key, sum.whole()})
	}
	if left.Runs > 0 {
		left = left.whole()
		found.LeftOut = &left
	}
	slices.SortFunc(found.Rows, func(a, b CostRow) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.USD, a.USD), cmp.Compare(b.Runs, a.Runs), a.compare(b.CostKey))
	})
	if q.Limit > 0 && len(found.Rows) > q.Limit {
		found.Rows, found.More = found.Rows[:q.Limit], len(found.Rows)-q.Limit
	}
	return found, nil
}

func (q CostQuery) filtered() bool { return q.Person+q.Channel+q.Repo+q.Model != "" }

func (q CostQuery) wants(c store.Cost, persons []string) bool {
	return within(c.Scopes, q.Repo, persons, q.Channel) && (q.Model == "" || strings.EqualFold(c.Model, q.Model))
}

// key is the row that a cost belongs to. What somebody asked for by several accounts is in one row.
func (q CostQuery) key(c store.Cost, people People) (k CostKey) {
	for _, group := range q.By {
		*k.field(group) = valueOf(c, group)
		if group == ByPerson {
			k.Person = people.named(k.Person)
		}
		k.Other = k.Other || c.Other && group != ByDay
	}
	return k
}

// valueOf is what a cost has of a group.
func valueOf(c store.Cost, group CostGroup) string {
	named := func(kind string) string {
		for _, s := range c.Scopes {
			if name, ok := strings.CutPrefix(s, kind); ok {
				return name
			}
		}
		return ""
	}
	switch group {
	case ByPerson:
		return named(userScope)
	case ByChannel:
		return named(channelScope)
	case ByRepository:
		return named(repoScope)
	case ByModel:
		return c.Model
	default:
		return c.Day.Format(time.DateOnly)
	}
}

// Name is what the runs of a row have in common of a group.
func (k CostKey) Name(group CostGroup) string { return *k.field(group) }

func (k *CostKey) field(group CostGroup) *string {
	switch group {
	case ByPerson:
		return &k.Person
	case ByChannel:
		return &k.Channel
	case ByRepository:
		return &k.Repo
	case ByModel:
		return &k.Model
	default:
		return &k.Day
	}
}

func (k CostKey) compare(l CostKey) int {
	return cmp.Or(
		cmp.Compare(k.Person, l.Person), cmp.Compare(k.Channel, l.Channel), cmp.Compare(k.Repo, l.Repo), cmp.Compare(k.Model, l.Model),
	)
}

func (s *CostSum) add(c store.Cost) {
	s.USD += c.USD
	s.Runs += c.Runs
	s.Usage.Input += c.Input
	s.Usage.Output += c.Output
	s.Usage.CacheRead += c.CacheRead
	s.Usage.CacheCreation += c.CacheCreation
}

// whole is the sum in whole micro-dollars, as amounts are stored.
func (s CostSum) whole() CostSum {
	s.USD = math.Round(s.USD*1e6) / 1e6
	return s
}
