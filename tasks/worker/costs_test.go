package worker

import (
	"context"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/desk"
	gocmp "github.com/google/go-cmp/cmp"
)

// costs returns the cost table of yesterday, today and tomorrow, because a test may run over midnight.
func (f *fleet) costs(q desk.CostQuery) desk.Costs {
	f.Helper()
	q.First, q.Last = time.Now().AddDate(0, 0, -1), time.Now().AddDate(0, 0, 1)
	c, err := f.desk.Costs(f.Context(), q)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// A worker's runs are counted in the costs once, interrupted ones included, with model and tokens.
func TestRunsAreInTheCosts(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 1)
	f.agent.do = interrupted(started, 0.3)
	stop := f.worker()
	id := f.submit(f.task("a", "x"))
	f.next(started)
	stop()
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		r := costing(0.4)
		r.Model, r.Usage = "some model\n", agent.Usage{Input: 1, Output: 2, CacheRead: 3, CacheCreation: 4}
		return r, nil
	}
	f.worker()
	f.ending(id)
	want := []desk.CostRow{
		{
			CostKey: desk.CostKey{Model: "some-model"},
			CostSum: desk.CostSum{USD: 0.4, Runs: 1, Usage: agent.Usage{
				Input: 1, Output: 2, CacheRead: 3, CacheCreation: 4,
			}},
		},
		{CostKey: desk.CostKey{}, CostSum: desk.CostSum{USD: 0.3, Runs: 1}},
	}
	if diff := gocmp.Diff(want, f.costs(desk.CostQuery{By: []desk.CostGroup{desk.ByModel}}).Rows); diff != "" {
		t.Error(diff)
	}
}
