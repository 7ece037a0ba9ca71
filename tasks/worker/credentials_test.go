package worker

import (
	"context"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/rights"
)

// What a run has spent with its credential is in the costs. A credential that the model has refused is
// left out by all workers, and the console shows it.
func TestWorkersShareCredentials(t *testing.T) {
	t.Parallel()
	f := budgeted(t, rights.Budgets{})
	now := time.Now().UTC().Truncate(time.Second)
	windows := []agent.CredentialWindow{{Name: "5h", Used: 0.4, ResetsAt: now.Add(time.Hour)}}
	f.agent.credentials = map[string]agent.CredentialState{
		"a": {Windows: windows, Seen: now}, "b": {Until: now.Add(time.Hour), Status: 429, HeldAt: now},
	}
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		r := costing(1.3)
		r.API = &agent.API{Credential: "a"}
		return r, nil
	}
	f.worker()
	f.ending(f.submit(f.task("t", "x")))
	want := []desk.CostRow{
		{CostKey: desk.CostKey{Credential: "a"}, CostSum: desk.CostSum{USD: 1.3, Runs: 1}},
	}
	if diff := gocmp.Diff(want, f.costs(desk.CostQuery{By: []desk.CostGroup{desk.ByCredential}}).Rows); diff != "" {
		t.Error(diff)
	}

	other := &fakeAgent{credentials: map[string]agent.CredentialState{"a": {}, "b": {}}}
	f.idle(func(c *Config) { c.Runner = other }).credentials.Share(t.Context())
	for name, held := range map[string]bool{"a": false, "b": true} {
		if s := other.Credentials()[name]; s.Until.After(now) != held {
			t.Errorf("the other worker knows of %s: %+v", name, s)
		}
	}

	f.idle(func(c *Config) { // a worker with one credential, which has no name
		c.Credential = "0123abcd"
		c.Runner = &fakeAgent{credentials: map[string]agent.CredentialState{"": {Windows: windows, Seen: now}}}
	}).credentials.Share(t.Context())
	shown := map[string]float64{}
	list, err := desk.FleetOf(f.desk).Credentials(t.Context())
	for _, c := range list {
		shown[c.Name] = c.Spent
		if (c.Name == "a" || c.Name == "0123abcd") && !gocmp.Equal(c.Windows, windows) {
			t.Errorf("windows of %s: %+v", c.Name, c.Windows)
		}
	}
	if diff := gocmp.Diff(map[string]float64{"a": 1.3, "b": 0, "0123abcd": 0}, shown); diff != "" ||
		err != nil {
		t.Errorf("%v, credentials (-want +got):\n%s", err, diff)
	}
}
