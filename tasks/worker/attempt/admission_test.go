package attempt

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// A short limit of one of several credentials slows down no start, if another one is free.
func TestShortLimitOfOneOfSeveralCredentials(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(withCredential)
	claim, err := f.store.Claim(t.Context(), f.submit(f.task("a", "x")), 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	run := w.hold(t.Context(), claim, nil)
	defer w.handOn(run)
	run.result = failed(agent.ClassRateLimit)
	run.result.API = &agent.API{Calls: 1, Status: 429, FreeAt: time.Now()}
	w.admission.recordThrottle(run)
	for range 3 {
		if err := w.admission.admit(run); err != nil {
			t.Errorf("a start waits: %v", err)
		}
	}
}

// A task whose credential is refused runs again at once if another one is free, and uses no attempt.
func TestAnotherCredentialIsFree(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(withCredential)
	id := f.submit(f.task("a", "x"))
	f.put("errand:task:"+id, "attempt", strconv.Itoa(maxAttempts-1))
	claim, err := f.store.Claim(t.Context(), id, 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	run := w.hold(t.Context(), claim, nil)
	defer w.handOn(run)
	run.result = failed(agent.ClassAuth)
	now := time.Now()
	for free, want := range map[time.Time]string{now: "", now.Add(time.Hour): parkLimit} {
		run.result.RetryAt, run.result.API = free, &agent.API{Calls: 1, Status: 401, FreeAt: free}
		next, _ := w.Timing.retryDecision(run)
		if next == nil || next.Counts || next.Parked != want || next.At.After(time.Now()) != (want != "") {
			t.Errorf("free at %v: %+v", free, next)
		}
	}
}

// held returns the credentials that are held.
func (f *fleet) held() (held []store.Credential) {
	f.Helper()
	all, err := f.store.Credentials.List(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range all {
		if c.Until.After(time.Now()) {
			held = append(held, c)
		}
	}
	return held
}

// What an outage means for the fleet: starts are held until the next try, and pages say why.
func TestOutageHoldsStarts(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(withCredential, func(c *Config) { c.Timing.Again = time.Minute })
	away := failed(agent.ClassOverloaded)
	if f.fails(w, away, "old", 20, horizon) != nil {
		t.Error("not given up after hours")
	}
	for parks, want := range map[int]time.Duration{0: 4, 1: 8, 2: 16, 3: 32, 4: 32, 1000: 32} {
		next := f.fails(w, away, fmt.Sprint(parks), parks, time.Hour)
		if wait := time.Until(next.At).Round(time.Minute); next.Parked != parkOutage || wait != want*time.Minute {
			t.Errorf("after %d pauses it waits for %s", parks, wait)
		}
	}
	all := f.held()
	if len(all) != 1 || !strings.Contains(all[0].Why, "could not be reached") {
		t.Errorf("credentials: %+v", all)
	}
}

// One task is no proof of an outage, nor are two if a run ended well between them, nor is what only a CLI says.
func TestOutageIsConfirmed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(withCredential, func(c *Config) { c.Timing.Again = time.Minute })
	away := failed(agent.ClassOverloaded)
	forged := failed(agent.ClassOverloaded)
	forged.API = &agent.API{Status: http.StatusOK}
	for _, thread := range []string{"a", "b"} {
		if next := f.fails(w, forged, thread, 0, 0); next == nil || next.Parked != parkOutage {
			t.Errorf("a task whose CLI says so itself is not parked: %+v", next)
		}
	}
	_ = f.fails(w, away, "c", 0, 0)
	well := f.claimed(w, f.submit(f.task("d", "x")))
	well.result = answer("x")
	w.admission.recordThrottle(well)
	w.handOn(well)
	_ = f.fails(w, away, "e", 0, 0)
	if all := f.held(); len(all) != 0 {
		t.Errorf("held: %+v", all)
	}
	_ = f.fails(w, away, "f", 0, 0)
	if all := f.held(); len(all) != 1 {
		t.Errorf("held: %+v", all)
	}
}

// A task that an outage holds back says so once, although the hold is renewed, and names no time at which it would end.
func TestOutageIsToldOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(withCredential, func(c *Config) { c.Timing.Again = time.Minute })
	id := f.submit(f.task("waits", "x"))
	run := f.claimed(w, id)
	defer w.handOn(run)
	_ = f.fails(w, failed(agent.ClassOverloaded), "a", 0, 0)
	shown := map[string]bool{} // the status says each time until when it waits
	for parks, thread := range []string{"b", "c"} {
		_ = f.fails(w, failed(agent.ClassOverloaded), thread, parks, 0)
		wait := w.waitAfter(run.Claim.Record(), w.admission.admit(run))
		if wait.key != outageKey || !strings.HasPrefix(wait.message, "Paused: "+whyAway) ||
			!strings.Contains(wait.message, "as soon as the model answers again") {
			t.Errorf("key %s, message %q", wait.key, wait.message)
		}
		shown[wait.Tell] = true
	}
	if len(shown) != 2 {
		t.Errorf("the status is shown for %v", shown)
	}
}

// Two tries of one hold are one reason, although each waits until a time of its own.
func TestHoldIsShownOnce(t *testing.T) {
	t.Parallel()
	w := newFleet(t).idle()
	for _, at := range []int64{1, 2} {
		held := heldError{&tasks.ErrLater{At: time.Unix(at, 0), Why: "x", Tell: "held-1"}}
		if wait := w.waitAfter(store.Record{}, held); wait.Tell != "held-1" {
			t.Errorf("the status is shown for %s", wait.Tell)
		}
	}
}
