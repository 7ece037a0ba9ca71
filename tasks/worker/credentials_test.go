package worker

import (
	"context"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/desk"
)

// What a run has spent with its credential is in the costs. A credential that has reached its cap, or that the model
// has refused, is left out by all workers, and the console shows it.
func TestWorkersShareCredentials(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	now := time.Now().UTC().Truncate(time.Second)
	windows := []agent.CredentialWindow{{Name: "5h", Used: 0.4, ResetsAt: now.Add(time.Hour)}}
	f.agent.credentials = map[string]agent.CredentialState{
		"a": {Cap: 1, Windows: windows, Seen: now}, "b": {Until: now.Add(time.Hour), Status: 429, HeldAt: now},
		"c": {Cap: 1, Live: 1},
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
	if sum := f.costs(desk.CostQuery{Credential: "c"}).Total; sum.USD != 0 {
		t.Errorf("the costs of c: %+v", sum)
	}

	other := &fakeAgent{credentials: map[string]agent.CredentialState{"a": {Cap: 1}, "b": {}, "c": {Cap: 1}}}
	f.idle(func(c *Config) { c.Runner = other }).credentials.Share(t.Context())
	// c with open runs
	for name, c := range map[string]struct{ capped, held bool }{
		"a": {true, false}, "b": {false, true}, "c": {true, false},
	} {
		if s := other.Credentials()[name]; s.CappedUntil.After(now) != c.capped || s.Until.After(now) != c.held {
			t.Errorf("the other worker knows of %s: %+v", name, s)
		}
	}
	if s := f.agent.Credentials()["c"]; !s.CappedUntil.After(now) { // with what its runs have spent so far
		t.Errorf("the worker knows of c: %+v", s)
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
	if diff := gocmp.Diff(map[string]float64{"a": 1.3, "b": 0, "c": 0, "0123abcd": 0}, shown); diff != "" ||
		err != nil {
		t.Errorf("%v, credentials (-want +got):\n%s", err, diff)
	}
}

// Open runs of two workers reach a cap together. When one of them ends, its cost counts once.
func TestOpenRunsOfAllWorkersReachACap(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	end := make(chan struct{})
	f.agent.credentials = map[string]agent.CredentialState{"a": {Cap: 2}}
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		f.agent.change("a", agent.CredentialState{Cap: 2, Live: 0.8})
		<-end
		f.agent.change("a", agent.CredentialState{Cap: 2}) // its gateway closes
		r := costing(0.8)
		r.API = &agent.API{Credential: "a"}
		return r, nil
	}
	f.worker()
	other := &fakeAgent{credentials: map[string]agent.CredentialState{"a": {Cap: 2}}}
	second := f.idle(func(c *Config) { c.Runner = other })
	second.beat(t.Context())
	capped := func(live float64, want bool) {
		t.Helper()
		other.change("a", agent.CredentialState{Cap: 2, Live: live})
		second.credentials.Share(t.Context())
		if got := other.Credentials()["a"].CappedUntil.After(time.Now()); got != want {
			t.Errorf("with $%.2f more, the cap is reached: %t", live, got)
		}
	}
	id := f.submit(f.task("t", "x"))
	for open := 0.0; open != 0.8; { // at its next heartbeat
		all, err := f.store.Credentials.ShareOpen(t.Context(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		open = all["a"]
	}
	capped(0.9, false)
	capped(1.3, true)
	close(end)
	f.ending(id) // 0.8 is settled, and no longer open
	capped(0.9, false)
	capped(1.3, true)
	list, err := desk.FleetOf(f.desk).Credentials(t.Context())
	if err != nil || len(list) != 1 || list[0].Spent != 0.8 || list[0].Live != 1.3 ||
		list[0].CappedAt(time.Now()).IsZero() {
		t.Errorf("%v, the console knows %+v", err, list)
	}
}
