package automation

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
)

const hourly = "0 * * * *"

// Times that passed while no front door ran become one task; those before the schedule existed become none.
func TestMissedTimes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), rights.Policy{})
	f.start(rights.Policy{}, 0, Automation{Name: "x", When: hourly, Prompt: "Go."})
	f.look(utc("2026-05-01 12:30"))
	if new := f.created(); len(new) > 0 {
		t.Fatalf("a new schedule ran %v", new)
	}
	f.look(utc("2026-05-09 17:20"))
	new := f.created()
	if len(new) != 1 || !tasks.Born(new[0]).Equal(utc("2026-05-09 17:00")) {
		t.Fatalf("after a week: %v", new)
	}
	f.end(new[0], tasks.Answered)
	f.look(utc("2026-05-09 17:30"))
	if again := f.created(); len(again) > 0 {
		t.Errorf("then %v", again)
	}
}

// A schedule with other times begins anew.
func TestChangedTimes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), rights.Policy{})
	f.start(rights.Policy{}, 0, Automation{Name: "x", When: "0 13 * * *", Prompt: "Go."})
	f.look(utc("2026-05-01 12:30"))
	f.doors = nil
	f.start(rights.Policy{}, 0, Automation{Name: "x", When: "0 12 * * *", Prompt: "Go."})
	f.look(utc("2026-05-02 12:30"))
	f.look(utc("2026-05-03 11:59"))
	if new := f.created(); len(new) > 0 {
		t.Errorf("it ran %v", new)
	}
	f.look(utc("2026-05-03 12:00"))
	if new := f.created(); len(new) != 1 {
		t.Errorf("at its time: %v", new)
	}
}

// A front door that started with a wrong clock does not silence a schedule until then.
func TestClockThatWasFarAhead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), rights.Policy{})
	f.start(rights.Policy{}, 10*365*24*time.Hour, Automation{Name: "x", When: hourly, Prompt: "Go."})
	f.look(utc("2026-05-01 12:30"))
	f.doors = nil
	f.start(rights.Policy{}, 0, Automation{Name: "x", When: hourly, Prompt: "Go."})
	f.look(utc("2026-05-01 12:31"))
	if new := f.created(); len(new) > 0 {
		t.Fatalf("it ran %v", new)
	}
	f.look(utc("2026-05-01 13:00"))
	if new := f.created(); len(new) != 1 || !tasks.Born(new[0]).Equal(utc("2026-05-01 13:00")) {
		t.Errorf("at its time: %v", new)
	}
}

func TestNoOverlap(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), rights.Policy{})
	for range 3 {
		f.start(rights.Policy{}, 0, Automation{Name: "x", When: hourly, Prompt: "Go."})
	}
	f.look(utc("2026-05-01 12:30"))
	f.look(utc("2026-05-01 13:00"))
	first := f.created()
	f.look(utc("2026-05-01 14:00"))
	f.look(utc("2026-05-01 15:00"))
	if new := f.created(); len(first) != 1 || len(new) > 0 {
		t.Fatalf("%v, and then %v while it had not ended", first, new)
	}
	if got := f.shown(); got.Skipped != 2 || got.Task != first[0] || !got.Next.Equal(utc("2026-05-01 16:00")) ||
		!got.Last.Equal(utc("2026-05-01 13:00")) {
		t.Errorf("shown %+v", got)
	}
	f.end(first[0], tasks.Answered)
	f.look(utc("2026-05-01 15:30"))
	if new := f.created(); len(new) > 0 {
		t.Errorf("a skipped time was made up for: %v", new)
	}
	f.look(utc("2026-05-01 16:00"))
	if new := f.created(); len(new) != 1 {
		t.Errorf("after its end: %v", new)
	}
}

// A front door that died after it claimed a time is replaced by another one.
func TestClaimedTimeIsSubmitted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), rights.Policy{})
	d := f.start(rights.Policy{}, 0, Automation{Name: "x", When: hourly, Prompt: "Go."})
	f.look(utc("2026-05-01 12:30"))
	s := d.schedules[0]
	st, err := s.memo.Load(t.Context())
	if err == nil {
		st, err = s.claim(t.Context(), st, utc("2026-05-01 13:00"))
	}
	if err != nil || st.Phase != claimed {
		t.Fatal(st, err)
	}
	f.look(utc("2026-05-01 13:01"))
	if new := f.created(); len(new) != 1 || new[0] != st.Task {
		t.Errorf("created %v, want %s", new, st.Task)
	}
	if _, err := s.claim(t.Context(), st, utc("2026-05-01 14:00")); !errors.Is(err, errTaken) {
		t.Errorf("a claim by an outdated state: %v", err)
	}
}

// Three failures in a row pause a schedule until an operator resumes it.
func TestPause(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 00:30"), rights.Policy{})
	d := f.start(rights.Policy{}, 0, Automation{Name: "x", When: hourly, Prompt: "Go.", Repo: "acme/api"})
	f.look(utc("2026-05-01 00:30"))
	at := utc("2026-05-01 01:00")
	for _, kind := range []tasks.EndingKind{
		tasks.Failed, tasks.TimedOut, tasks.Answered, tasks.Failed, tasks.Cancelled, tasks.Stalled, tasks.Lost,
	} {
		f.look(at)
		new := f.created()
		if len(new) != 1 {
			t.Fatalf("%v, before %s", new, kind)
		}
		f.end(new[0], kind)
		at = at.Add(time.Hour)
	}
	f.look(at)
	if new, got := f.created(), f.shown(); len(new) > 0 || got.Failures != 3 || !got.Paused.Equal(at) ||
		!got.Next.IsZero() {
		t.Fatalf("created %v, shown %+v", new, got)
	}
	if found := d.Diagnose(t.Context()); len(found) != 1 || !strings.Contains(found[0].Why, " UTC, after 3 tasks") ||
		!strings.Contains(found[0].Remedy, "enqueue schedules resume x") {
		t.Errorf("found %+v", found)
	}
	in := func(role policy.Role) context.Context {
		return people.WithVisitor(t.Context(), people.Visitor{
			Role: policy.Admin,
			In: func(_ context.Context, repo string) (r policy.Repo) {
				if repo == "acme/api" {
					r.Role = role
				}
				return r
			},
		})
	}
	if _, err := d.ResumeSchedule(in(policy.Anyone), "x"); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("resumed by someone who does not see it: %v", err)
	}
	if list, err := d.Schedules(in(policy.Anyone)); len(list) > 0 || err != nil {
		t.Errorf("shown to someone who does not see it: %v, %v", list, err)
	}
	_, err := d.ResumeSchedule(in(policy.User), "x")
	if _, ok := errors.AsType[*people.RoleError](err); !ok {
		t.Errorf("resumed by a user: %v", err)
	}
	at = at.Add(5*time.Hour + time.Minute)
	f.look(at)
	if got, err := d.ResumeSchedule(in(policy.Operator), "x"); err != nil || !got.Paused.IsZero() || got.Failures != 0 {
		t.Errorf("resumed: %+v, %v", got, err)
	}
	f.look(at.Add(time.Minute))
	if new := f.created(); len(new) > 0 {
		t.Errorf("a time during the pause was made up for: %v", new)
	}
	f.look(at.Add(time.Hour))
	if new := f.created(); len(new) != 1 {
		t.Errorf("after the pause: %v", new)
	}
}

// A refused task, here by the policy, counts as a failure.
func TestRefused(t *testing.T) {
	t.Parallel()
	policy := rights.Policy{Repository: func(string) (rights.Repository, bool) { return rights.Repository{}, false }}
	f := newFleet(t, utc("2026-05-01 00:30"), policy)
	d := f.start(policy, 0, Automation{Name: "x", When: hourly, Prompt: "Go.", Repo: "acme/api"})
	for hour := range 4 {
		f.look(utc("2026-05-01 00:30").Add(time.Duration(hour) * time.Hour))
	}
	got := f.shown()
	if got.Failures != 3 || got.Paused.IsZero() || !strings.Contains(got.Problem, "acme/api") {
		t.Errorf("shown %+v", got)
	}
	if found := d.Diagnose(t.Context()); !strings.Contains(found[0].Remedy, "acme/api") {
		t.Errorf("found %+v", found)
	}
}

// Listen looks at each time and every minute.
func TestListen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		memory := &countingMemory{}
		s, err := New(Schedule, Config{
			Automations: []Automation{{Name: "x", When: hourly, Times: times(hourly), Prompt: "Go."}}, Memory: memory,
		})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(30 * time.Second) // the clock begins at an hour
		if err := s.Listen(ctx, http.NewServeMux(), nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour - 30*time.Second)
		synctest.Wait()
		if want := 60 + 1; len(memory.at) != want || memory.at[len(memory.at)-1].Minute() != 0 ||
			memory.at[len(memory.at)-1].Second() != 0 {
			t.Errorf("%d looks, want %d; the last at %v", len(memory.at), want, memory.at[len(memory.at)-1])
		}
		cancel()
		synctest.Wait()
	})
}
