package attempt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
)

// A worker that is suspended again and again, perhaps by what a run does, does not continue that run for ever.
func TestFrozenRunsContinueForHours(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle()
	for age, counts := range map[time.Duration]bool{horizon / 2: false, 2 * horizon: true} {
		id := f.submit(f.task(age.String(), "x"))
		f.put("errand:task:"+id, "created", strconv.FormatInt(time.Now().Add(-age).UnixMicro(), 10))
		run := f.claimed(w, id)
		run.result = failed(agent.ClassFrozen)
		next, _ := w.Timing.retryDecision(run)
		w.handOn(run)
		if next == nil || next.Counts != counts {
			t.Errorf("after %s: %+v", age, next)
		}
	}
}

// fails claims a task whose model is away, as for the last of some attempts, and decides what follows from that.
func (f *fleet) fails(w *Processor, r agent.Result, thread string, parks int, age time.Duration) *retryError {
	f.Helper()
	id := f.submit(f.task(thread, "x"))
	f.put("errand:task:"+id, "attempt", strconv.Itoa(maxAttempts-1))
	f.put("errand:task:"+id, "parked", parksOf(parkOutage, age, parks))
	run := f.claimed(w, id)
	defer w.handOn(run)
	run.result = r
	next, _ := w.Timing.retryDecision(run)
	if next != nil {
		w.admission.holdStarts(run, next)
	}
	return next
}

// parksOf is the field of a record of a task that was parked for a cause so often since then.
func parksOf(cause string, since time.Duration, times int) string {
	return fmt.Sprintf("%s %d %d", cause, time.Now().Add(-since).UnixMicro(), times)
}

// Each cause to be parked is judged by itself: how long a task has waited for one does not count for the other.
func TestCausesOfParksAreJudgedApart(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(withCredential)
	overloaded, capped := failed(agent.ClassOverloaded), limited(time.Now().Add(time.Minute))
	several := failed(agent.ClassOverloaded)
	several.API = &agent.API{Calls: 1, Status: 529, Credential: "team-a"}
	for name, row := range map[string]struct {
		parks  string
		result agent.Result
		want   string
	}{
		"a limit after a long outage":   {parksOf(parkOutage, 2*horizon, 50), capped, parkLimit},
		"an outage after long limits":   {parksOf(parkLimit, 2*horizon, 50), overloaded, parkOutage},
		"a limit again and again":       {parksOf(parkLimit, horizon/2, 50), capped, parkLimit},
		"a limit for hours":             {parksOf(parkLimit, horizon, 2), capped, ""},
		"all of several are overloaded": {"", several, parkOutage},
		"what nobody can read":          {"7", capped, parkLimit},
		"both, and only the other for long": {
			parksOf(parkOutage, horizon, 9) + "\n" + parksOf(parkLimit, 0, 1), capped, parkLimit,
		},
	} {
		id := f.submit(f.task(name, "x"))
		f.put("errand:task:"+id, "attempt", strconv.Itoa(maxAttempts-1))
		f.put("errand:task:"+id, "parked", row.parks)
		run := f.claimed(w, id)
		run.result = row.result
		next, _ := w.Timing.retryDecision(run)
		w.handOn(run)
		if (next == nil) != (row.want == "") || next != nil && next.Parked != row.want {
			t.Errorf("%s: %+v, want %q", name, next, row.want)
		}
	}
}

// A parked task gets one message for each limit that it waits for, even if it is posted again: in its status if the
// source has one, else in its thread.
func TestParkedIsSaidOnce(t *testing.T) {
	t.Parallel()
	for _, shows := range []bool{false, true} {
		t.Run(fmt.Sprintf("shows %t", shows), func(t *testing.T) {
			t.Parallel()
			parkedIsSaidOnce(t, shows)
		})
	}
}

func parkedIsSaidOnce(t *testing.T, shows bool) {
	t.Helper()
	f := newFleet(t)
	w, s := f.idle(), f.source
	s.shows = shows
	id := f.submit(f.task("a", "x"))
	claim, err := f.store.Claim(t.Context(), id, 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	run := w.hold(t.Context(), claim, nil)
	defer w.handOn(run)
	run.result = limited(time.Now().Add(time.Hour))
	next, _ := w.Timing.retryDecision(run)
	for range 2 { // as after a lost reply
		if err := w.handBack(run, next); !errors.Is(err, ErrReturned) {
			t.Error("it does not wait")
		}
	}
	// Before the hand-back, so that neither a shutdown nor a death loses it.
	if shows && len(s.said) != 0 || !shows && len(s.said) != 1 {
		t.Errorf("said %d times", len(s.said))
	}
	if !shows {
		if said := <-s.said; !strings.HasPrefix(said, "Paused until ") {
			t.Errorf("said: %s", said)
		}
	}
	if shown := <-f.source.waited; !strings.HasPrefix(shown, id+" Paused: ") ||
		!strings.HasSuffix(shown, "; resumes about later") {
		t.Errorf("shown: %s", shown)
	}
}

// Every failure has a clause, also one of a class without a sentence, and one that begins with another alphabet.
func TestClause(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{
		"The agent failed. Try again.": "the agent failed", "": "the agent failed (news)", ". x": "the agent failed (news)",
		"Éric is away.": "éric is away", "X.": "x",
	} {
		got := clause(agent.Result{Error: &agent.Error{Class: "news", User: user}})
		if got != want {
			t.Errorf("%q becomes %q, want %q", user, got, want)
		}
	}
}
