package desk

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// spend settles a run of a task.
func (f *harness) spend(t tasks.Task, model string, usd float64) {
	f.Helper()
	id := f.submit(t)
	c, err := f.store.Claim(f.Context(), id, 0, "w")
	if err != nil {
		f.Fatal(err)
	}
	if _, err := c.Spend(f.Context(), store.Expense{
		USD: usd, Model: model, Tokens: store.Tokens{Output: 10},
	}); err != nil {
		f.Fatal(err)
	}
}

func TestCostsAreGrouped(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	put := func(actor, channel, repo, model string, usd float64) {
		t.Helper()
		task := f.task(fmt.Sprint("t", f.n), "x")
		task.Source, task.Actor, task.Channel, task.Repo = "slack", actor, channel, repo
		f.spend(task, model, usd)
	}
	put("U1", "C1", "Acme/API", "opus", 0.1)
	put("U1", "C1", "acme/api", "haiku", 0.2)
	put("U1", "C2", "", "opus", 0.3)
	put("U2", "C1", "acme/api", "opus", 1)
	put("U2", "", "", "", 0)
	for name, test := range map[string]struct {
		query CostQuery
		want  string
	}{
		"all":      {CostQuery{}, "1.60/5, = 1.60/5"},
		"people":   {CostQuery{By: []CostGroup{ByPerson}}, "slack/U2 1.00/2, slack/U1 0.60/3, = 1.60/5"},
		"channels": {CostQuery{By: []CostGroup{ByChannel}}, "slack/C1 1.30/3, slack/C2 0.30/1, - 0.00/1, = 1.60/5"},
		"places":   {CostQuery{By: []CostGroup{ByRepository}}, "acme/api 1.30/3, - 0.30/2, = 1.60/5"},
		"models":   {CostQuery{By: []CostGroup{ByModel}}, "opus 1.40/3, haiku 0.20/1, - 0.00/1, = 1.60/5"},
		"two groups": {
			CostQuery{By: []CostGroup{ByModel, ByChannel}, Person: "u1"},
			"opus slack/C2 0.30/1, haiku slack/C1 0.20/1, opus slack/C1 0.10/1, = 0.60/3",
		},
		"a person": {
			CostQuery{By: []CostGroup{ByChannel}, Person: "slack/U2"}, "slack/C1 1.00/1, - 0.00/1, = 1.00/2",
		},
		"a channel": {
			CostQuery{By: []CostGroup{ByPerson}, Channel: "slack/C1", Repo: "ACME/api"},
			"slack/U2 1.00/1, slack/U1 0.30/2, = 1.30/3",
		},
		"a model":     {CostQuery{By: []CostGroup{ByPerson}, Model: "Haiku"}, "slack/U1 0.20/1, = 0.20/1"},
		"nobody":      {CostQuery{By: []CostGroup{ByPerson}, Person: "github/U1"}, "= 0.00/0"},
		"no part one": {CostQuery{By: []CostGroup{ByPerson}, Repo: "api"}, "= 0.00/0"},
	} {
		if got := f.costs(test.query).lines(test.query.By...); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
	c := f.costs(CostQuery{By: []CostGroup{ByModel}, Limit: 2})
	if got, want := c.lines(ByModel), "opus 1.40/3, haiku 0.20/1, = 1.60/5"; got != want || c.More != 1 {
		t.Errorf("got %s, and %d more, want %s", got, c.More, want)
	}
	if u := f.costs(CostQuery{}).Total.Usage; u != (agent.Usage{Output: 50}) {
		t.Errorf("tokens: %+v", u)
	}
}

// Costs beyond a day's bound should count in the sums, without names.
func TestCostsBeyondTheBound(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.store = f.open(store.Config{Redis: f.redis(), CostCap: 1})
	for i, usd := range []float64{1, 2, 4} {
		task := f.task(fmt.Sprint("t", i), "x")
		task.Actor = fmt.Sprint("u", i)
		f.spend(task, "opus", usd)
	}
	for want, q := range map[string]CostQuery{
		"7.00/3, = 7.00/3":                       {},
		"other 6.00/2, fake/u0 1.00/1, = 7.00/3": {By: []CostGroup{ByPerson}},
		"fake/u0 1.00/1, = 1.00/1":               {By: []CostGroup{ByPerson}, Model: "opus"},
	} {
		c := f.costs(q)
		if got := c.lines(q.By...); got != want {
			t.Errorf("%+v: got %s, want %s", q, got, want)
		}
		if left := c.LeftOut; (left != nil) != q.filtered() || left != nil && (left.USD != 6 || left.Runs != 2) {
			t.Errorf("%+v: left out %+v", q, left)
		}
	}
	if rows := f.costs(CostQuery{By: []CostGroup{ByDay}}).Rows; len(rows) == 0 || rows[0].Other || rows[0].Day == "" {
		t.Errorf("of a day all is known: %+v", rows)
	}
}

// costs is the table of yesterday, today and tomorrow: a test may run over midnight.
func (f *harness) costs(q CostQuery) Costs {
	f.Helper()
	q.First, q.Last = time.Now().AddDate(0, 0, -1), time.Now().AddDate(0, 0, 1)
	c, err := f.desk.Costs(f.Context(), q)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// lines are the rows in short.
func (c Costs) lines(by ...CostGroup) string {
	var lines []string
	for _, r := range c.Rows {
		line := ""
		for _, g := range by {
			if r.Other {
				line += "other "
			} else {
				line += cmp.Or(r.Name(g), "-") + " "
			}
		}
		lines = append(lines, fmt.Sprintf("%s%.2f/%d", line, r.USD, r.Runs))
	}
	return strings.Join(append(lines, fmt.Sprintf("= %.2f/%d", c.Total.USD, c.Total.Runs)), ", ")
}
