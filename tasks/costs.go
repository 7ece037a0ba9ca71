package tasks

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// CostGroup is a property by which costs are grouped.
type CostGroup string

// The groups. A run counts on the day (UTC, by Redis' clock) when it is settled; for its task's asker, channel and
// repository; for its main model; for the names of the model's credentials that it used, as far as they have any; and,
// if it is a review that was completed, for the size of the reviewed change.
const (
	ByDay        CostGroup = "day"
	ByPerson     CostGroup = "person"
	ByChannel    CostGroup = "channel"
	ByRepository CostGroup = "repository"
	ByModel      CostGroup = "model"
	ByCredential CostGroup = "credential"
	BySize       CostGroup = "size"
)

// CostGroups lists all groups.
var CostGroups = []CostGroup{ByDay, ByPerson, ByChannel, ByRepository, ByModel, ByCredential, BySize}

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

	Size  string `json:"size,omitempty"`  // one of Sizes
	Other bool   `json:"other,omitempty"` // runs of which only the day is known, because that day had too many kinds
}

// CostSum is the total of several runs.
type CostSum struct {
	USD   float64     `json:"cost_usd"`
	Max   float64     `json:"max_usd,omitempty"` // the highest cost of a run with a size
	Runs  int64       `json:"runs"`
	Usage agent.Usage `json:"usage"`
}

// CostRow is one row of the table.
type CostRow struct {
	CostKey
	CostSum
}

// Sizes lists the classes of changes by their number of changed lines, the smallest first.
var Sizes = []string{"≤50", "≤200", "≤500", "≤1000", ">1000"}

// SizeOf returns the class of a change; empty if none exists.
func SizeOf(lines int) string {
	if lines <= 0 {
		return ""
	}
	i, _ := slices.BinarySearch([]int{50, 200, 500, 1000}, lines)
	return Sizes[i]
}

// Costs is a table of costs: newest days first, and within a day the smallest size and then the highest cost first.
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
	persons, sees := people.filter(q.Person), people.visible(ctx)
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
		found.Rows = append(found.Rows, CostRow{key, sum.whole()})
	}
	if left.Runs > 0 {
		left = left.whole()
		found.LeftOut = &left
	}
	slices.SortFunc(found.Rows, func(a, b CostRow) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), compareSizes(a.Size, b.Size), cmp.Compare(b.USD, a.USD),
			cmp.Compare(b.Runs, a.Runs), a.compare(b.CostKey))
	})
	if q.Limit > 0 && len(found.Rows) > q.Limit {
		found.Rows, found.More = found.Rows[:q.Limit], len(found.Rows)-q.Limit
	}
	return found, nil
}

func (q CostQuery) filtered() bool { return q.Person+q.Channel+q.Repo+q.Model+q.Credential != "" }

func (q CostQuery) wants(c store.Cost, persons []string) bool {
	return within(c.Scopes, q.Repo, persons, q.Channel) && (q.Model == "" || strings.EqualFold(c.Model, q.Model)) &&
		(q.Credential == "" || scoped(c.Scopes, credentialScope) == q.Credential)
}

// key returns the row that a cost belongs to. The accounts of one person share a row.
func (q CostQuery) key(c store.Cost, people People) CostKey {
	k := CostKey{
		Day: c.Day.Format(time.DateOnly), Person: people.named(scoped(c.Scopes, userScope)),
		Channel: scoped(c.Scopes, channelScope), Repo: scoped(c.Scopes, repoScope), Model: c.Model,
		Credential: scoped(c.Scopes, credentialScope), Size: c.Size,
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
	return []*string{&k.Day, &k.Person, &k.Channel, &k.Repo, &k.Model, &k.Credential, &k.Size}
}

// Name returns the row's value for one of the CostGroups.
func (k CostKey) Name(group CostGroup) string { return *k.fields()[slices.Index(CostGroups, group)] }

func (k CostKey) compare(l CostKey) int {
	return slices.CompareFunc(k.fields(), l.fields(), func(a, b *string) int { return cmp.Compare(*a, *b) })
}

// compareSizes orders sizes; runs without one come last.
func compareSizes(a, b string) int {
	place := func(size string) int {
		if i := slices.Index(Sizes, size); i >= 0 {
			return i
		}
		return len(Sizes)
	}
	return cmp.Compare(place(a), place(b))
}

func (s *CostSum) add(c store.Cost) {
	s.USD += c.USD
	s.Max = max(s.Max, c.Max)
	s.Runs += c.Runs
	s.Usage.Input += c.Input
	s.Usage.Output += c.Output
	s.Usage.CacheRead += c.CacheRead
	s.Usage.CacheCreation += c.CacheCreation
}

// whole rounds the sum.
func (s CostSum) whole() CostSum {
	s.USD = wholeUSD(s.USD)
	return s
}

// wholeUSD rounds a sum to micro-dollars, the precision of stored amounts.
func wholeUSD(sum float64) float64 { return math.Round(sum*1e6) / 1e6 }

// Budgets limits the cost of tasks, in US dollars at list price. 0 means no budget. All budgets but Task are per day,
// UTC.
type Budgets struct {
	Task       float64 // of one task, even if it asks for more
	User       float64 // of each person
	Channel    float64 // of each channel
	Repository float64 // of each repository
	Day        float64 // of the whole fleet
	Contact    string  // who can raise them
}

func (b Budgets) Daily() []store.Budget {
	return []store.Budget{
		{Scope: userScope, USD: b.User},
		{Scope: channelScope, USD: b.Channel},
		{Scope: repoScope, USD: b.Repository},
		{Scope: store.Fleet, USD: b.Day},
	}
}

// Bill is what the final message says about a task's cost beyond the cost of its last run.
type Bill struct {
	Earlier float64  `json:"earlier_usd,omitempty"` // cost of its earlier runs, interrupted or retried
	Crashes int      `json:"crashes,omitempty"`     // runs that died with their worker, at unknown cost
	Near    []string `json:"near,omitempty"`        // the daily budgets that the task pushed above 80 %
	UsedUp  bool     `json:"used_up,omitempty"`     // the task's own maximum ended the run, so a retry has nothing left
}

func (b Budgets) contact() string { return cmp.Or(strings.TrimSpace(b.Contact), "An operator") }

// Exhausted explains to the asker which budget ended a run that was allowed to cost run: the task's own, of which
// earlier runs had spent a part, or what the budgets of the day had left. It is empty if the run had no budget.
func (b Budgets) Exhausted(own, earlier, run float64) string {
	said := fmt.Sprintf("The agent used up its budget of %s for this task. ", legible.Dollars(own))
	switch {
	case run <= 0:
		return ""
	case !b.OwnUsedUp(own, earlier, run):
		return fmt.Sprintf("The agent used up the %s that a budget for today had left. %s can raise it (budgets in "+
			"errand.yaml); a new day begins at midnight UTC.", legible.Dollars(run), b.contact())
	case b.Task > 0 && own >= b.Task:
		return said + b.contact() + " can raise it (budgets.task in errand.yaml)."
	case b.Task > 0:
		return said + fmt.Sprintf("Ask again with a larger budget, up to %s.", legible.Dollars(b.Task))
	}
	return said + "Ask again with a larger budget."
}

// OwnUsedUp reports whether it was the task's own budget that ended a run which was allowed to cost run, and not what
// the budgets of the day had left. Earlier runs had spent a part of it.
func (Budgets) OwnUsedUp(own, earlier, run float64) bool {
	return own > 0 && run > 0 && run >= own-earlier-0.005
}

// permitRetry refuses to retry a task that has nothing left to spend: its maximum is for all its runs.
func (b Budgets) permitRetry(t Task, spent float64, e *Ending) error {
	own := t.Options.MaxUSD
	if own <= 0 || spent < own && (e == nil || !e.Bill.UsedUp) {
		return nil
	}
	return &InputError{Sentence: b.Exhausted(own, 0, own) + " A retry has the same budget."}
}

// Refusal explains to the asker which budget refused the task.
func (b Budgets) Refusal(over *store.OverBudget) *InputError {
	who, whose := b.contact(), BudgetName(over.Scope)
	return &InputError{Sentence: fmt.Sprintf("%s is used up: %s of %s. %s can raise it; a new "+
		"day begins at midnight UTC.",
		strings.ToUpper(whose[:1])+whose[1:], legible.Dollars(over.Spent), legible.Dollars(over.Budget), who)}
}

// BudgetName names the budget of a scope for the asker of a task.
func BudgetName(scope string) string {
	switch kind, name, _ := strings.Cut(scope, ":"); kind + ":" {
	case userScope:
		return "your budget for today"
	case channelScope:
		return "this channel's budget for today"
	case repoScope:
		return "the budget of " + name + " for today"
	}
	return "the fleet's budget for today"
}

// LowerLimit returns the lower of two limits; 0 means no limit.
func LowerLimit(a, b float64) float64 {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// CostUSD returns the known cost of the task when it ended, including its earlier runs.
func (e Ending) CostUSD() float64 { return wholeUSD(e.Result.CostUSD + e.Bill.Earlier) }

// cost returns that cost as text; empty if nothing is known.
func (e Ending) cost() string {
	text := ""
	if usd := e.CostUSD(); usd > 0 {
		text = legible.Dollars(usd)
	}
	if e.Bill.Crashes > 0 {
		text = strings.TrimPrefix(text+" and the unknown cost of runs that died with a worker", " and ")
	}
	return text
}

// The prefixes of scopes.
const (
	repoScope       = "repo:"
	userScope       = "user:"
	channelScope    = "channel:"
	credentialScope = store.CredentialScope
)

// Limits is how many tasks may run at once in the whole fleet. 0 means no limit.
type Limits struct {
	Repository int // for each repository
	User       int // for each person
	Credential int // for each model credential
}

// Caps returns the limits in the form that a claim takes. credential is the claiming worker's; empty if unknown.
func (l Limits) Caps(credential string) []store.Cap {
	caps := []store.Cap{{Scope: repoScope, Max: l.Repository}, {Scope: userScope, Max: l.User}}
	if credential != "" {
		caps = append(caps, store.Cap{Scope: credentialScope + credential, Max: l.Credential})
	}
	return caps
}

// scopes returns the scopes in which a task counts for limits and budgets. All accounts of a person are one scope.
func (p People) scopes(t Task) []string {
	var list []string
	add := func(kind, name string) {
		if name = format.OneWord(name); name != "" {
			list = append(list, kind+name)
		}
	}
	for _, repo := range t.Repositories() { // the main one first, to which costs are attributed
		add(repoScope, strings.ToLower(repo)) // GitHub ignores case
	}
	if t.Actor != "" {
		add(userScope, p.asker(t))
	}
	if t.Channel != "" {
		add(channelScope, t.Source+"/"+t.Channel)
	}
	return list
}
