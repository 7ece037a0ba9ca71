package desk

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// A stop also cancels the messages that the run absorbed: the agent may not have read them, and they would start when
// the run stops. Messages after the stop, and those that the person may not stop, stay.
func TestStopAllReachesAbsorbedMessages(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	// Messages from before the first claim in an empty Redis are not absorbed.
	if _, err := f.store.Claim(t.Context(), f.submit(f.task("first", "x")), 0, "w"); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	at := func(n time.Duration, actor string) tasks.Task {
		one := f.task("a", "do it")
		one.ID, one.Actor = tasks.NewID(begun.Add(n*time.Microsecond), "fake", "a"), actor
		return one
	}
	run, message, others := at(0, "ann"), at(1, "ann"), at(2, "ben")
	stop, late := at(3, "ann").ID, at(4, "ann")
	for _, one := range []tasks.Task{run, message, others, late} {
		f.submit(one)
	}
	claim, err := f.store.Claim(t.Context(), run.ID, 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, ok, err := claim.Take(t.Context(), false, nil); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	mine := func(one tasks.Task) bool { return one.Actor == "ann" }
	if stopped, spared, err := f.desk.StopAll(t.Context(), run.Thread, stop, "ann", mine); stopped != 1 ||
		spared != 0 || err != nil {
		t.Fatal(stopped, spared, err)
	}
	if err := claim.End(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{message.ID: "ann", others.ID: "", late.ID: ""} {
		rec, err := f.store.Get(t.Context(), id)
		if err != nil || rec.State != store.Waiting || rec.CancelBy != want {
			t.Errorf("%s: %s, cancelled by %q, not %q; %v", id, rec.State, rec.CancelBy, want, err)
		}
	}
}
