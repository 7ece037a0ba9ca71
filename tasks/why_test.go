package tasks

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

func TestReason(t *testing.T) {
	t.Parallel()
	for want, rec := range map[string]store.Record{
		"2 of 2 runs busy in acme/payments; you are 3rd":       {State: store.Waiting, Why: "x", Blocked: store.Blocked{Scope: "repo:acme/payments", Runs: 2, Max: 2, Place: 3}},
		"1 of 1 runs busy for whoever asked; you are 11th":     {State: store.Waiting, Blocked: store.Blocked{Scope: "user:slack/U1", Runs: 1, Max: 1, Place: 11}},
		"3 of 3 runs busy with the model account; you are 1st": {State: store.Waiting, Blocked: store.Blocked{Scope: "credential:c", Runs: 3, Max: 3, Place: 1}},
		"2 requests of its thread come first":                  {State: store.Waiting, Blocked: store.Blocked{Place: 2}},
		"no worker has been free for it yet":                   {State: store.Waiting},
		"the limit is reached":                                 {State: store.Waiting, Why: "the limit is reached"},
		"":                                                     {State: store.Ended, Why: "x"},
	} {
		if got := reason(rec); got != want {
			t.Errorf("reason = %q, want %q", got, want)
		}
	}
}

// Who waits for a full scope is told why and where in line, once, wherever that is shown.
func TestWaitingIsTold(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits = Limits{User: 1}
	started, finish := f.running()
	f.worker()
	all, notices := []string{f.submit(f.task("a", "x"))}, []string{}
	f.next(started)
	for i, why := range []string{"1 of 1 runs busy for whoever asked; you are 1st", "1 of 1 runs busy for whoever asked; you are 2nd"} {
		id := f.submit(f.task(fmt.Sprint("b", i), "x"))
		all = append(all, id)
		f.waits(id)
		s := f.status(id)
		list, err := f.desk.List(t.Context(), Filter{Limit: 1})
		if err != nil || s.Why != why || list.Tasks[0].Why != why {
			t.Errorf("why: %q, in the list %q, %v", s.Why, list.Tasks[0].Why, err)
		}
		if told := <-f.source.waited; told != id+" Waiting: "+why {
			t.Errorf("told: %s", told)
		}
		notices = append(notices, "Waiting: "+why)
	}
	if c, err := f.store.Counts(t.Context()); err != nil || c != (store.Counts{Waiting: 2, Running: 1}) {
		t.Errorf("counts: %+v, %v", c, err)
	}
	close(finish)
	for i, id := range all {
		f.ending(id)
		if got := f.events(id, agent.Notice); i > 0 && (len(got) == 0 || !strings.HasSuffix(got[0], notices[i-1])) {
			t.Errorf("events: %q", got)
		}
	}
	if c, err := f.store.Counts(t.Context()); err != nil || c != (store.Counts{}) {
		t.Errorf("counts: %+v, %v", c, err)
	}
}

// A run that waits for a person gives its places to others.
func TestQuestionsHoldNoPlace(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Red or blue?"}`)
	})
	f.policy.Limits = Limits{User: 1}
	f.talker(s)
	ids := []string{f.submit(f.task("a", "x")), f.submit(f.task("b", "x"))}
	for range ids {
		<-s.asked // the second only if the first does not count
	}
	for _, id := range ids {
		if _, err := f.desk.Answer(t.Context(), id, "", "ann", "red"); err != nil {
			t.Fatal(err)
		}
		if e := f.ending(id); e.Result.Text != "ann answered: red" {
			t.Errorf("ending = %+v", e)
		}
	}
	f.stopAll()
	f.noneCounts()
}
