package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/rights"
)

// A task that waits for a full scope gets the reason and its place in line, once, wherever that is shown.
func TestWaitingIsTold(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits = rights.Limits{User: 1}
	started, finish := f.running()
	f.worker()
	all := []string{f.submit(f.task("a", "x"))}
	f.next(started)
	for i, why := range []string{
		"1st in line; 1 of 1 runs busy for the same person", "2nd in line; 1 of 1 runs busy for the same person",
	} {
		id := f.submit(f.task(fmt.Sprint("b", i), "x"))
		all = append(all, id)
		f.waits(id)
		s := f.status(id)
		list, err := f.desk.List(t.Context(), desk.Filter{Limit: 1})
		if err != nil || s.Why != why || list.Tasks[0].Why != why {
			t.Errorf("why: %q, in the list %q, %v", s.Why, list.Tasks[0].Why, err)
		}
		if told := <-f.source.waited; told != id+" Waiting: "+why {
			t.Errorf("shown: %s", told)
		}
	}
	if c, err := f.store.Counts(t.Context()); err != nil || c != (store.Counts{Waiting: 2, Running: 1}) {
		t.Errorf("counts: %+v, %v", c, err)
	}
	close(finish)
	for _, id := range all {
		f.ending(id)
	}
	if c, err := f.store.Counts(t.Context()); err != nil || c != (store.Counts{}) {
		t.Errorf("counts: %+v, %v", c, err)
	}
}

// What a worker has handed back and not explained, because it died, the leader explains while the task waits for a
// time.
func TestReasonOfADeadWorkerIsTold(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	handBack := func(thread string, at time.Time) string {
		t.Helper()
		id := f.submit(f.task(thread, "x"))
		claim, err := f.store.Claim(t.Context(), id, 0, "w")
		if err == nil {
			err = claim.Return(t.Context(), store.Wait{At: at, Why: "the model is away", Tell: "k"})
		}
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	handBack("a", time.Time{}) // is about to start
	waits := handBack("b", time.Now().Add(time.Hour))
	leader := f.idle()
	leader.recovery.Reconcile(t.Context())
	leader.waits.Wait()
	if len(f.source.waited) != 1 {
		t.Fatalf("%d were told", len(f.source.waited))
	}
	if told := <-f.source.waited; !strings.HasPrefix(told, waits+" ") || !strings.Contains(told, "the model is away") {
		t.Errorf("shown: %s", told)
	}
}

// A run that waits for a person frees its places for others.
func TestQuestionsHoldNoPlace(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Red or blue?"}`)
	})
	f.policy.Limits = rights.Limits{User: 1}
	f.talker(s)
	ids := []string{f.submit(f.task("a", "x")), f.submit(f.task("b", "x"))}
	for range ids {
		<-s.asked // the second starts only if the first does not count
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
