package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
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
		next, _ := w.cfg.Timing.retryDecision(run)
		run.giveUp()
		if next == nil || next.Counts != counts {
			t.Errorf("after %s: %+v", age, next)
		}
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
	const tries = 6 // each one is slower than the one before, as starts are when a model is throttled
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
	if said := <-s.said; !strings.HasPrefix(said, "Paused: the model could not be reached or is overloaded.") ||
		!strings.Contains(said, "enqueue cancel "+id) {
		t.Errorf("said: %s", said)
	}
}

// claimed claims a waiting task for a worker that does not run. The caller releases the run.
func (f *fleet) claimed(w *Worker, id string) *run {
	f.Helper()
	claim, err := f.store.Claim(f.Context(), id, 0, "w")
	if err != nil {
		f.Fatal(err)
	}
	return w.hold(f.Context(), claim, nil)
}

// fails claims a task whose model is away, as for the last of some attempts, and decides what follows from that.
func (f *fleet) fails(w *Worker, r agent.Result, thread string, parks int, age time.Duration) *retryError {
	f.Helper()
	id := f.submit(f.task(thread, "x"))
	f.put("errand:task:"+id, "attempt", strconv.Itoa(maxAttempts-1))
	f.put("errand:task:"+id, "parked", parksOf(parkOutage, age, parks))
	run := f.claimed(w, id)
	defer run.giveUp()
	run.result = r
	next, _ := w.cfg.Timing.retryDecision(run)
	if next != nil {
		w.admission.awaitModel(run, next)
	}
	return next
}

// held returns the credentials that are held.
func (f *fleet) held() (held []store.Credential) {
	f.Helper()
	for _, c := range must(f.store.Credentials.List(f.Context())) {
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
	stop := f.worker(withCredential)
	f.ending(f.submit(f.task("d", "x"))) // it ends well
	stop()
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
	defer run.giveUp()
	_ = f.fails(w, failed(agent.ClassOverloaded), "a", 0, 0)
	for parks, thread := range []string{"b", "c"} {
		_ = f.fails(w, failed(agent.ClassOverloaded), thread, parks, 0)
		_, _, note, message := w.waitAfter(run.Claim.Record(), w.admission.admit(run))
		if note.Key != outageKey || !strings.HasPrefix(message, "Paused: "+whyAway) ||
			!strings.Contains(message, "as soon as the model answers again") {
			t.Errorf("key %s, message %q", note.Key, message)
		}
	}
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
		next, _ := w.cfg.Timing.retryDecision(run)
		run.giveUp()
		if (next == nil) != (row.want == "") || next != nil && next.Parked != row.want {
			t.Errorf("%s: %+v, want %q", name, next, row.want)
		}
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
				at.UTC().Format("15:04 UTC"), "(in 48 min)", row.why, "enqueue cancel " + id, "kept",
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
		at.UTC().Format("15:04 UTC on 2 January")+" (in 2 days)") {
		t.Errorf("ending %s: %s", e.Kind, e.Sentence())
	}
	if e := f.ending(f.submit(f.task("b", "y"))); e.Kind != tasks.Answered {
		t.Errorf("the next task: %+v", e)
	}
}

// A parked task gets one message for each limit that it waits for, even if it is posted again.
func TestParkedIsSaidOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	s := &talkingSource{fakeSource: f.source, said: make(chan string, 10)}
	w := f.idle(func(c *Config) { c.Sources = []tasks.Source{s} })
	id := f.submit(f.task("a", "x"))
	claim, err := f.store.Claim(t.Context(), id, 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	run := w.hold(t.Context(), claim, nil)
	defer run.giveUp()
	run.result = limited(time.Now().Add(time.Hour))
	next, _ := w.cfg.Timing.retryDecision(run)
	for range 2 { // as after a lost reply
		if err := w.handBack(run, next); !errors.Is(err, errReturned) {
			t.Error("it does not wait")
		}
	}
	if len(s.said) != 1 { // before the hand-back, so that neither a shutdown nor a death loses it
		t.Errorf("said %d times", len(s.said))
	}
	if shown := <-f.source.waited; !strings.HasPrefix(shown, id+" Paused: ") ||
		!strings.HasSuffix(shown, "; resumes about later") {
		t.Errorf("shown: %s", shown)
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

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 40 * time.Second: "40 s", 48*time.Minute + 20*time.Second: "48 min",
		5*time.Hour + 59*time.Minute + 40*time.Second: "6 h 0 min", 60 * time.Hour: "2 days",
	} {
		if got := span(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
