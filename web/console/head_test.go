package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// The head of a task's page has the usage of the present run, and the cost of all runs.
func TestMeterOfRetries(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_700_000_100_000)
	used := func(at time.Time) desk.Logged {
		return desk.Logged{ID: fmt.Sprintf("%d-0", at.UnixMilli()), Event: agent.Event{
			Kind: agent.Used, CostUSD: 2, Usage: &agent.Usage{Input: 1000, Output: 10},
		}}
	}
	running := tasks.Status{State: string(store.Running), Started: start, CostUSD: 10}
	settled := running
	settled.CostUSD, settled.Settled = 12, true
	const tokens = "1.0k tokens in, 10 out"
	for name, c := range map[string]struct {
		status       tasks.Status
		used         desk.Logged
		cost, tokens string
	}{
		"the run before": {running, used(start.Add(-time.Second)), "$10.00", ""},
		"no event":       {running, desk.Logged{}, "$10.00", ""},
		"the present":    {running, used(start.Add(time.Second)), "$12.00", tokens},
		"it is settled":  {settled, used(start.Add(time.Second)), "$12.00", tokens},
		"it waits again": {tasks.Status{State: string(store.Waiting), CostUSD: 10}, used(start), "$10.00", ""},
		"stopped while it waited": {
			tasks.Status{State: string(store.Ended), CostUSD: 10, Ending: &tasks.Ending{Kind: tasks.Cancelled}},
			used(start),
			"$10.00", "",
		},
	} {
		if m := newMeter(c.status, c.used, start.Add(time.Minute)); m.Cost != c.cost || m.Tokens != c.tokens {
			t.Errorf("%s: %q, %q, want %q, %q", name, m.Cost, m.Tokens, c.cost, c.tokens)
		}
	}
}
