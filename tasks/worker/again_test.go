package worker

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/tasks"
)

// failing is an agent whose first runs fail with these errors; then it answers.
func failing(results ...agent.Result) func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
	n := 0
	return func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		if n++; n > len(results) {
			return answer("at last"), nil
		}
		r := results[n-1]
		r.Session = agent.Session{
			ID: "22222222-2222-2222-2222-222222222222", Data: []byte("so far " + line(s.Prompt.ID)),
		}
		return r, nil
	}
}

func failed(c agent.Class) agent.Result {
	return agent.Result{Outcome: agent.Failed, Error: agent.NewError(c, "it did not work")}
}

func times(n int, r agent.Result) []agent.Result {
	list := make([]agent.Result, n)
	for i := range list {
		list[i] = r
	}
	return list
}

// Every kind of retry: how often it happens, and from where the next run continues.
func TestRetryByClass(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	stalled := agent.Result{Outcome: agent.Stalled}
	for name, row := range map[string]struct {
		fail     agent.Result
		attempts int // until the task is given up
		fresh    bool
		told     string // to the agent that continues
		words    string // of the ending, when the task is given up
	}{
		"never": {failed(agent.ClassModel), 1, false, "", "Model not available to this account. Choose another one."},
		"soon": {
			failed(agent.ClassStart), 3, false, "(the worker could not start the agent)",
			"It was tried 3 times.",
		},
		"later": {
			failed(agent.ClassRateLimit), 3, false, "(rate limited: the model accepts no more requests at the moment)",
			"It was tried 3 times.",
		},
		"reset": {
			failed(agent.ClassUsageLimit), 3, false, "(the model account has reached its usage limit)",
			"It was tried 3 times.",
		},
		"fresh": {failed(agent.ClassSession), 2, true, "could not be resumed", "It was tried 2 times."},
		"resume": {
			failed(agent.ClassKilled), 2, false, "(the agent was killed from outside)", "It was tried 2 times.",
		},
		"stalled": {stalled, 2, false, "(the agent showed no sign of work)", "Ask again to continue."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !documented(string(doc), row.fail.Retry(), row.attempts) {
				t.Errorf("docs/errors.md does not say that %s has %d attempts", row.fail.Retry(), row.attempts)
			}
			f := newFleet(t)
			f.worker()
			f.ending(f.submit(f.task("recovers", "before")))

			f.agent.do = failing(times(row.attempts-1, row.fail)...)
			f.ending(f.submit(f.task("recovers", "x")))
			runs := f.agent.specs()[1:]
			if len(runs) != row.attempts {
				t.Fatalf("%d runs, want %d", len(runs), row.attempts)
			}
			for _, s := range runs[1:] {
				switch resumed := s.Resume != nil && strings.HasPrefix(string(s.Resume.Data), "so far"); {
				case row.fresh &&
					(s.Resume != nil || s.Prompt.Text != "x" || !strings.Contains(s.System, row.told) || len(s.History) == 0):
					t.Errorf("resumes %+v, prompt %q, system prompt %q, history %v", s.Resume, s.Prompt.Text,
						s.System, s.History)
				case !row.fresh && (!resumed || !strings.Contains(s.Prompt.Text, row.told)):
					t.Errorf("resumes %+v, prompt %q", s.Resume, s.Prompt.Text)
				}
			}

			f.agent.do = failing(times(row.attempts, row.fail)...)
			id := f.submit(f.task("fails", "x"))
			if e := f.ending(id); e.Kind == tasks.Answered || !strings.HasSuffix(e.Sentence(), row.words) {
				t.Errorf("given up with %s: %s", e.Kind, e.Sentence())
			}
			if n := len(f.agent.specs()) - 1 - row.attempts; n != row.attempts {
				t.Errorf("given up after %d runs, want %d", n, row.attempts)
			}
			if s, err := f.desk.Status(t.Context(), id); err != nil || s.Attempt != row.attempts || s.Why != "" {
				t.Errorf("status %+v, %v", s, err)
			}
		})
	}
}

// A run that ended because its worker was suspended continues as often as that happens, and none is an attempt.
func TestFrozenRunsContinue(t *testing.T) {
	t.Parallel()
	const frozen = 5
	f := newFleet(t)
	f.agent.do = failing(times(frozen, failed(agent.ClassFrozen))...)
	f.worker(func(c *Config) { c.Timing.Again = time.Hour })
	id := f.submit(f.task("a", "x"))
	if notice, want := f.notice(id), "Continuing: the worker was suspended for a while"; !strings.HasPrefix(notice, want) {
		t.Errorf("its followers are told %q", notice)
	}
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("ending %s: %s", e.Kind, e.Sentence())
	}
	runs := f.agent.specs()
	if len(runs) != frozen+1 {
		t.Errorf("%d runs", len(runs))
	}
	for _, s := range runs[1:] {
		if s.Resume == nil || !strings.HasPrefix(string(s.Resume.Data), "so far") {
			t.Errorf("continues from %+v", s.Resume)
		}
	}
	if s, err := f.desk.Status(t.Context(), id); err != nil || s.Attempt != 1 {
		t.Errorf("status %+v, %v", s, err)
	}
}

// documented reports whether the table of retries has a row with that number of attempts.
func documented(doc string, how agent.Retry, attempts int) bool {
	for line := range strings.Lines(doc) {
		if strings.HasPrefix(line, "| `"+string(how)+"` |") {
			return strings.HasSuffix(line, fmt.Sprintf("| %d |\n", attempts))
		}
	}
	return false
}

// While a task waits for its retry, its status shows the reason and the time, and followers of its run see a notice.
func TestWaitsForAnotherTry(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.do = failing(failed(agent.ClassOverloaded))
	f.worker(func(c *Config) { c.Timing.Again = time.Hour })
	id := f.submit(f.task("a", "x"))
	notice := f.notice(id)
	if !strings.Contains(notice, "attempt 2 of 3: the model could not be reached") {
		t.Errorf("posted %q", notice)
	}
	s := f.waiting(id)
	if wait := time.Until(s.At); s.Why != "the model could not be reached or is overloaded" || wait < 29*time.Minute ||
		wait > 91*time.Minute {
		t.Errorf("waits for %s because %q", wait, s.Why)
	}
}

// A task waits for a model that is away for longer than its attempts, without using more of them, and says so once. No
// other run starts meanwhile. After hours it is given up.
func TestTaskOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	const tries = 3 // each one is slower than the one before, as starts are when a model is throttled
	f := newFleet(t)
	s := &talkingSource{fakeSource: f.source, said: make(chan string, 10)}
	f.agent.do = failing(times(maxAttempts+tries, failed(agent.ClassOverloaded))...)
	f.talker(s, withCredential)
	id := f.submit(f.task("a", "x"))
	if e := f.ending(id); e.Kind != tasks.Answered || len(f.agent.specs()) != maxAttempts+tries+1 {
		t.Errorf("ending after %d runs: %+v", len(f.agent.specs()), e)
	}
	if st, err := f.desk.Status(t.Context(), id); err != nil || st.Attempt != maxAttempts {
		t.Errorf("attempt %d, %v", st.Attempt, err)
	}
	if len(s.said) != 1 {
		t.Errorf("said %d times", len(s.said))
	}
	if said := <-s.said; !strings.HasPrefix(said, "Paused: the model could not be reached or is overloaded.") {
		t.Errorf("said: %s", said)
	}
}

// notice follows a task to the first notice of its run.
func (f *fleet) notice(id string) string {
	f.Helper()
	ctx := await.Context(f)
	for l, err := range f.desk.Follow(ctx, id, "") {
		if err != nil || l.End {
			f.Fatalf("no notice: %v", err)
		}
		if l.Event.Kind == agent.Notice {
			return l.Event.Text
		}
	}
	return ""
}

// waiting looks up a task until it has started and waits.
func (f *fleet) waiting(id string) tasks.Status {
	f.Helper()
	ctx := await.Context(f)
	for {
		s, err := f.desk.Status(ctx, id)
		if err != nil {
			f.Fatal(err)
		}
		if s.State == "waiting" && s.Why != "" && !s.At.IsZero() { // without a live worker it waits for one
			return s
		}
	}
}

// limited is a run that a usage limit ended; the limit is lifted afterwards.
func limited(at time.Time) agent.Result {
	r := failed(agent.ClassUsageLimit)
	r.RetryAt = at
	return r
}

// A task waits for a limit to be lifted as often as necessary, within bounds, without using attempts, and shows it each
// time.
func TestParking(t *testing.T) {
	t.Parallel()
	const parks = 7
	f := newFleet(t)
	s := &talkingSource{fakeSource: f.source, said: make(chan string, 2*parks)}
	f.agent.do = failing(times(parks, limited(time.Now()))...)
	f.talker(s)
	id := f.submit(f.task("a", "x"))
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("ending: %+v", e)
	}
	if st, err := f.desk.Status(t.Context(), id); err != nil || st.Attempt != 1 {
		t.Errorf("attempt %d, %v", st.Attempt, err)
	}
	if len(s.said) != parks {
		t.Errorf("said %d times, want %d", len(s.said), parks)
	}
	runs := f.agent.specs()
	if last := runs[len(runs)-1]; last.Resume == nil || !strings.HasPrefix(string(last.Resume.Data), "so far") {
		t.Errorf("goes on in %+v", last.Resume)
	}
}

// The model's retry-after is honoured, also for rate limits.
func TestParkedTaskIsToldAndCancelled(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		class agent.Class
		why   string
	}{
		"usage limit": {agent.ClassUsageLimit, "the model account has reached its usage limit"},
		"rate limit":  {agent.ClassRateLimit, "rate limited: the model accepts no more requests at the moment"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			s := &talkingSource{fakeSource: f.source, said: make(chan string, 10)}
			r := failed(row.class)
			at := time.Now().Add(48*time.Minute + 30*time.Second)
			r.RetryAt = at
			f.agent.do = failing(r)
			f.talker(s)
			id := f.submit(f.task("a", "x"))
			said := <-s.said
			for _, want := range []string{
				at.UTC().Format("15:04 UTC"), "(in 48m)", row.why, "kept",
			} {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in %q", want, said)
				}
			}
			if notice := f.notice(id); notice != said {
				t.Errorf("the run's events have %q", notice)
			}
			st := f.waiting(id)
			if st.Why != row.why || st.At.Before(at) || st.At.After(at.Add(time.Minute)) || st.Attempt != 0 {
				t.Errorf("status %+v", st)
			}
			if _, err := f.desk.Cancel(t.Context(), id, "Ann"); err != nil {
				t.Fatal(err)
			}
			if e := f.ending(id); e.Kind != tasks.Cancelled || e.By != "Ann" {
				t.Errorf("ending %+v", e)
			}
		})
	}
}

// A task does not wait for days: it fails, and its message says when it could work.
func TestLimitBeyondTheHorizon(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	at := time.Now().Add(60 * time.Hour)
	f.agent.do = failing(limited(at))
	f.worker(withCredential)
	e := f.ending(f.submit(f.task("a", "x")))
	if e.Kind != tasks.Failed || !strings.Contains(e.Sentence(),
		at.UTC().Format("15:04 UTC on 2 January")+" (in 2d)") {
		t.Errorf("ending %s: %s", e.Kind, e.Sentence())
	}
	if e := f.ending(f.submit(f.task("b", "y"))); e.Kind != tasks.Answered {
		t.Errorf("the next task: %+v", e)
	}
}

// A retry does not undo a person's stop.
func TestCancelledRunIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 1)
	f.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		started <- s.ID
		<-ctx.Done()
		return failed(agent.ClassOverloaded), nil // it had failed at that very moment
	}
	f.worker()
	id := f.submit(f.task("a", "x"))
	<-started
	if _, err := f.desk.Cancel(t.Context(), id, "Ann"); err != nil {
		t.Fatal(err)
	}
	if e := f.ending(id); e.Kind != tasks.Failed {
		t.Errorf("ending %+v", e)
	}
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs", n)
	}
}
