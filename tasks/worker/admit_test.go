package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

func withCredential(c *Config) { c.Credential = "c" }

// A usage limit that one run reaches holds back all tasks of its credential, on every worker, and no others. Their
// threads are informed.
func TestLimitHoldsTheFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	s := &talkingSource{fakeSource: f.source, said: make(chan string, 10)}
	f.agent.do = failing(limited(time.Now().Add(time.Hour)))
	stop := f.talker(s, withCredential)
	first := f.submit(f.task("a", "x"))
	<-s.said
	f.waiting(first)
	stop()

	stop = f.talker(s, withCredential) // another worker
	second := f.submit(f.task("b", "y"))
	if said := <-s.said; !strings.Contains(said, "reached its usage limit") {
		t.Errorf("the second thread shows %q", said)
	}
	if notice := f.notice(second); !strings.Contains(notice, "reached its usage limit") {
		t.Errorf("the second task's events have %q", notice)
	}
	if st := f.waiting(second); st.Attempt != 0 || time.Until(st.At) < 59*time.Minute ||
		!strings.Contains(st.Why, "usage limit") {
		t.Errorf("the second task: %+v", st)
	}
	stop()
	for _, id := range []string{first, second} {
		if shown := <-f.source.waited; !strings.HasPrefix(shown, id+" Paused: ") {
			t.Errorf("the status of %s shows %q", id, shown)
		}
	}
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs", n)
	}

	f.worker(func(c *Config) { c.Credential = "another" })
	if e := f.ending(f.submit(f.task("c", "z"))); e.Kind != tasks.Answered {
		t.Errorf("with another credential: %+v", e)
	}
}

// A usage limit of one of several credentials parks its task and holds back no others, which may use another
// credential.
func TestLimitOfOneOfSeveralCredentials(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	r := limited(time.Now().Add(time.Hour))
	r.API = &agent.API{Calls: 1, Status: 429, Credential: "team-a"}
	f.agent.credentials = map[string]agent.CredentialState{"team-a": {}, "team-b": {}}
	f.agent.do = failing(r)
	f.worker(withCredential)
	if st := f.waiting(f.submit(f.task("a", "x"))); st.Attempt != 0 || time.Until(st.At) < 59*time.Minute {
		t.Errorf("the task: %+v", st)
	}
	if e := f.ending(f.submit(f.task("b", "y"))); e.Kind != tasks.Answered {
		t.Errorf("another task: %+v", e)
	}
	if known, err := f.store.Credentials.List(t.Context()); err != nil || len(known) != 0 {
		t.Errorf("held: %+v, %v", known, err)
	}
}

// When the limit is lifted, all tasks continue one after the other, and each ends.
func TestReleasedAfterTheLimit(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.do = failing(limited(time.Now().Add(300 * time.Millisecond)))
	f.worker(withCredential)
	var all []string
	for i := range 4 {
		all = append(all, f.submit(f.task(fmt.Sprint(i), "x")))
	}
	for _, id := range all {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("%s: %+v", id, e)
		}
	}
	if known, err := f.store.Credentials.List(t.Context()); err != nil || len(known) != 0 {
		t.Errorf("left of the limit: %+v, %v", known, err)
	}
}

// Throttled runs continue and slow down new starts; successful runs undo that.
func TestThrottledRunsSlowStartsDown(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := make(chan string, 10), make(chan struct{})
	f.agent.do = func(_ context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		h.Event(agent.Event{Kind: agent.Notice, Text: "trying again", Class: agent.ClassOverloaded})
		started <- s.ID
		<-finish
		return answer("x"), nil
	}
	f.worker(withCredential)
	first := f.submit(f.task("a", "x"))
	<-started
	f.slowed(time.Second)
	// As if another worker had just started a run, and the model had been overloaded for long.
	f.interval(time.Second, time.Now().Add(time.Minute))
	second := f.submit(f.task("b", "y"))
	st := f.waiting(second)
	if !strings.Contains(st.Why, "one after the other") || st.Attempt != 0 {
		t.Errorf("the second task: %+v", st)
	}
	if _, err := f.desk.Cancel(t.Context(), second, "Ann"); err != nil {
		t.Fatal(err)
	}
	close(finish)
	if e := f.ending(first); e.Kind != tasks.Answered {
		t.Errorf("the throttled run: %+v", e)
	}
	if e := f.ending(f.submit(f.task("c", "z"))); e.Kind != tasks.Answered {
		t.Errorf("after it went well: %+v", e)
	}
}

// A task that has waited long asks again soon after the next start is possible, so that newcomers do not overtake it
// forever.
func TestWhoWaitsLongAsksSoon(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	next := time.Now().Add(time.Minute)
	f.interval(time.Minute, next)
	long := f.submit(f.task("a", "x"))
	if err := f.rdb.HSet(t.Context(), "errand:task:"+long, "created", time.Now().Add(-time.Hour).UnixMicro()).Err(); err != nil {
		t.Fatal(err)
	}
	f.worker(withCredential)
	if s := f.waiting(long); s.At.Before(next.Add(-time.Second)) || s.At.After(next.Add(time.Second)) {
		t.Errorf("asks again %s after the next start may be", s.At.Sub(next))
	}
	// The new ones come at any time of the interval.
	late := false
	for n := 0; n < 30 && !late; n++ {
		s := f.waiting(f.submit(f.task(fmt.Sprint("new", n), "x")))
		late = s.At.After(next.Add(5 * time.Second))
	}
	if !late {
		t.Error("all new ones ask as soon")
	}
}

// interval sets the interval between starts with the credential, and the time of the next one.
func (f *fleet) interval(d time.Duration, next time.Time) {
	f.Helper()
	if err := f.rdb.HSet(f.Context(), "errand:credential:c", "interval", d.Microseconds(), "next", next.UnixMicro()).Err(); err != nil {
		f.Fatal(err)
	}
}

// A task that waits for its budget does not delay others.
func TestWaitingForABudgetTakesNoTurn(t *testing.T) {
	t.Parallel()
	f := budgeted(t, rights.Budgets{User: 1})
	started, finish := make(chan string, 10), make(chan struct{})
	f.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		started <- s.ID
		select {
		case <-finish:
		case <-ctx.Done(): // the test has failed
		}
		return answer("x"), nil
	}
	f.worker(withCredential)
	first := f.submit(f.task("a", "x"))
	f.next(started)
	f.interval(time.Hour, time.Time{})
	same := f.submit(f.task("b", "x"))
	f.waits(same)
	other := f.task("c", "x")
	other.Actor = "another"
	f.submit(other)
	if id := f.next(started); id != other.ID {
		t.Errorf("%s started", id)
	}
	if _, err := f.desk.Cancel(t.Context(), same, "ann"); err != nil {
		t.Fatal(err)
	}
	close(finish)
	f.ending(first)
	f.ending(other.ID)
}

// slowed waits until the interval between starts with the credential is that long.
func (f *fleet) slowed(want time.Duration) {
	f.Helper()
	ctx := await.Context(f)
	for {
		known, err := f.store.Credentials.List(ctx)
		if err != nil {
			f.Fatal(err)
		}
		if len(known) == 1 && known[0].Interval == want {
			return
		}
	}
}

// The class of a failure decides what the fleet records.
func TestHeed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.do = failing(failed(agent.ClassOverloaded))
	f.worker(withCredential, func(c *Config) { c.Timing.Again = time.Hour })
	f.waiting(f.submit(f.task("a", "x")))
	f.slowed(time.Second)

	g := newFleet(t)
	g.agent.do = failing(failed(agent.ClassModel))
	g.worker(withCredential)
	g.ending(g.submit(g.task("a", "x")))
	if known, err := g.store.Credentials.List(t.Context()); err != nil || len(known) != 0 {
		t.Errorf("learnt of a missing model: %+v, %v", known, err)
	}
}

// A credential that the model refuses is shown for the fleet until a run succeeds, and holds no task back. If a run has
// a gateway, only what the gateway saw counts.
func TestRefusedCredentialIsTold(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var runs []agent.Result
	for _, c := range []struct {
		class agent.Class
		api   *agent.API
	}{
		{agent.ClassAuth, &agent.API{Calls: 1, Status: 200}},
		{agent.ClassOverloaded, &agent.API{Calls: 1, Status: 200}},
		{agent.ClassAuth, &agent.API{Calls: 1, Status: 401}},
		{agent.ClassBilling, nil},
	} {
		r := failed(c.class)
		r.API = c.api
		runs = append(runs, r)
	}
	f.agent.do = failing(runs...)
	f.worker(withCredential, func(c *Config) { c.Timing.Again = time.Hour })
	for i, want := range []string{"", "", "authentication failed", "the model account has no credit", ""} {
		id := f.submit(f.task(fmt.Sprint(i), "x"))
		if i == 1 { // is retried
			f.waiting(id)
		} else {
			f.ending(id)
		}
		known, err := f.store.Credentials.List(t.Context())
		if err != nil || len(known) > 1 || (len(known) == 1) != (want != "") ||
			want != "" && !strings.HasPrefix(known[0].Refused, want) {
			t.Errorf("after run %d: %+v, %v; want %q", i, known, err, want)
		}
	}
}
