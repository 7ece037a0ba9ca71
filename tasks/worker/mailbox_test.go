package worker

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/goroutines"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/hold"
)

// conversing is a run whose test decides when it takes messages.
type conversing struct {
	*testing.T
	ctx  context.Context
	spec agent.Spec
	host agent.Host
	end  chan agent.Result
}

// converses makes a fleet's agent do what the test says; the test gets each run.
func (f *fleet) converses() <-chan *conversing {
	runs := make(chan *conversing, 10)
	f.agent.do = func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		c := &conversing{T: f.T, ctx: ctx, spec: s, host: h, end: make(chan agent.Result)}
		h.Event(agent.Event{Kind: agent.Taken, Text: s.Prompt.ID})
		runs <- c
		select {
		case r := <-c.end:
			return r, nil
		case <-ctx.Done():
		}
		r := answer("")
		r.Outcome, r.Session.Data = agent.Stopped, []byte("so far ")
		if errors.Is(context.Cause(ctx), hold.ErrDrain) { // else it is what the test has saved
			for _, id := range f.agent.notes() {
				r.Session.Data = append(r.Session.Data, line(id)...)
			}
		}
		return r, nil
	}
	return runs
}

// note adds a message to the conversation.
func (a *fakeAgent) note(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noted = append(a.noted, id)
}

func (a *fakeAgent) notes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.noted)
}

// next waits for a message for the live run.
func (c *conversing) next() agent.Message {
	c.Helper()
	m, ok := c.host.Next(c.ctx)
	if !ok {
		c.Fatal("no message for the live run")
	}
	return m
}

func (c *conversing) take(m agent.Message) {
	c.host.Event(agent.Event{Kind: agent.Taken, Text: m.ID})
}

// rest makes the run idle and returns the message that it gets then, or an empty one if the session should end.
func (c *conversing) rest() agent.Message {
	m, _ := c.host.Idle(c.ctx)
	return m
}

func (f *fleet) status(id string) tasks.Status {
	f.Helper()
	s, err := f.desk.Status(context.WithoutCancel(f.Context()), id)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// closes returns how often final messages were posted, by task.
func (f *fleet) closes() map[string]int {
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	return maps.Clone(f.source.closes)
}

func (f *fleet) equal(what string, got, want any) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A live run absorbs messages of its thread and reports it; one answer and one ending cover both.
func TestMessageIsAbsorbed(t *testing.T) {
	t.Parallel()
	f, s := talking(t, nil)
	runs := f.converses()
	f.talker(s)
	first := f.submit(f.task("a", "paint it"))
	run := <-runs
	receipt, err := f.desk.Submit(t.Context(), f.task("a", "blue"))
	if err != nil || receipt.Position != 1 || !receipt.Joins {
		t.Fatalf("receipt = %+v, %v", receipt, err)
	}
	second := receipt.ID
	m := run.next()
	if m.Text != "blue" || m.ID == "" {
		t.Errorf("message = %+v", m)
	}
	if said := <-s.said; !strings.Contains(said, "into account") {
		t.Errorf("the sender got %q", said)
	}
	if st := f.status(second); st.State != "absorbed" || st.Into != first || st.Worker == "" || st.Ending != nil {
		t.Errorf("while it runs: %+v", st)
	}
	run.take(m)
	if m := run.rest(); m.Text != "" {
		t.Errorf("at rest: %+v", m)
	}
	run.end <- answer("It is blue.")
	e := f.ending(first)
	f.equal("covers", e.Covers, []string{second})
	one, two := f.status(first), f.status(second)
	if two.State != "ended" || two.Ending.Result.Text != "It is blue." || two.Into != first ||
		two.Task.Prompt != "blue" {
		t.Errorf("afterwards: %+v", two)
	}
	f.equal("ending", two.Ending, one.Ending)
	f.stopAll()
	f.equal("final messages", f.closes(), map[string]int{first: 1})
	if n := len(f.agent.specs()); n != 1 || !f.status(second).Posted {
		t.Errorf("%d runs, posted %t", n, f.status(second).Posted)
	}
	f.equal("events of the run", f.events(first, tasks.Absorbed), []string{second + " somebody blue"})
	f.equal("events of the task", f.events(second, tasks.Absorbed),
		[]string{first + "  The run of task " + display.TaskID(first) + " takes this into account."})
	stored, err := f.store.Threads.Session(t.Context(), "fake/a")
	var past struct{ Said []agent.Turn }
	if err == nil {
		err = json.Unmarshal(stored.Meta, &past)
	}
	if want := turns("paint it", "blue", "It is blue."); err != nil || !cmp.Equal(past.Said, want) {
		t.Errorf("remembered: %+v, %v", past.Said, err)
	}
}

// turns are requests followed by an answer.
func turns(texts ...string) (list []agent.Turn) {
	for _, text := range texts {
		list = append(list, agent.Turn{Role: agent.User, Text: text})
	}
	list[len(list)-1].Role = agent.Assistant
	return list
}

// events returns the events of a kind in a task's stream.
func (f *fleet) events(id string, kind agent.Kind) (list []string) {
	f.Helper()
	for l, err := range f.desk.Follow(f.Context(), id, "") {
		if err != nil {
			f.Fatal(err)
		}
		if e := l.Event; e.Kind == kind {
			list = append(list, e.ToolID+" "+e.Tool+" "+e.Text)
		}
	}
	return list
}

// A message that was passed to the agent and not taken up gets its own run.
func TestMessageThatIsNotTakenUp(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	runs := f.converses()
	f.worker()
	first := f.submit(f.task("a", "one"))
	run := <-runs
	second, third := f.submit(f.task("a", "two")), f.submit(f.task("a", "three"))
	run.take(run.next())
	if m := run.next(); m.Text != "three" {
		t.Errorf("then came %q", m.Text)
	}
	run.end <- answer("one and two")
	f.equal("covers", f.ending(first).Covers, []string{second})
	run = <-runs
	if run.spec.Prompt.Text != "three" || run.spec.ID != third {
		t.Errorf("follow-up: %s %q", run.spec.ID, run.spec.Prompt.Text)
	}
	run.end <- answer("three")
	if e := f.ending(third); e.Result.Text != "three" || e.Covers != nil {
		t.Errorf("%+v", e)
	}
	if s := f.status(third); s.Into != "" {
		t.Errorf("%+v", s)
	}
}

// The order of a thread never changes, whether a message comes through Next, at rest, or waits for its own run.
func TestAbsorbedInOrder(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	runs := f.converses()
	f.worker()
	f.submit(f.task("a", "0"))
	run := <-runs
	var order []string
	for _, text := range []string{"1", "2", "3", "4", "5", "6"} {
		f.submit(f.task("a", text))
	}
	m := run.next()
	order = append(order, m.Text)
	if m := run.rest(); m.Text != "" { // about to be taken up
		t.Errorf("overtaken by %q", m.Text)
	}
	run.take(m)
	m = run.next()
	order = append(order, m.Text)
	run.take(m)
	for range 3 {
		m = run.rest()
		order = append(order, m.Text)
		ctx, cancel := context.WithCancel(run.ctx)
		overtaken := make(chan bool, 1)
		go func() {
			_, ok := run.host.Next(ctx)
			overtaken <- ok
		}()
		over := func() bool { return len(overtaken) > 0 }
		// A message passed at rest is sent first.
		if !goroutines.Await(over, 1, "worker.TestAbsorbedInOrder", "attempt.(*mailbox).Next(", "[select") {
			t.Error("overtaken")
		}
		cancel()
		<-overtaken
		run.take(m)
	}
	run.end <- answer("done")
	run = <-runs
	order = append(order, run.spec.Prompt.Text)
	run.end <- answer("done")
	f.equal("order", order, []string{"1", "2", "3", "4", "5", "6"})
}

// A task with another profile, repository or options, from another source or not from a person, is never absorbed, and
// neither are the tasks behind it.
func TestOnlyItsKindIsAbsorbed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*tasks.Task){
		"profile":    func(t *tasks.Task) { t.Profile = agent.Write },
		"repository": func(t *tasks.Task) { t.Repo = "acme/api" },
		"ref":        func(t *tasks.Task) { t.Ref = "main" },
		"directory":  func(t *tasks.Task) { t.Dir = "/srv" },
		"model":      func(t *tasks.Task) { t.Options.Model = "haiku" },
		"budget":     func(t *tasks.Task) { t.Options.MaxUSD = 1 },
		"review":     func(t *tasks.Task) { t.Class = tasks.Review },
		"source":     func(t *tasks.Task) { t.Source = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			runs := f.converses()
			f.worker()
			f.submit(f.task("a", "one"))
			run := <-runs
			other := f.task("a", "two")
			change(&other)
			for i, task := range []tasks.Task{other, f.task("a", "three")} {
				if r, err := f.desk.Submit(t.Context(), task); err != nil || r.Joins || r.Position != i+1 {
					t.Errorf("receipt = %+v, %v", r, err)
				}
			}
			if m := run.rest(); m.Text != "" {
				t.Errorf("absorbed %q", m.Text)
			}
			if s := f.status(other.ID); s.State != "waiting" {
				t.Errorf("%+v", s)
			}
			run.end <- answer("one")
		})
	}
}

// A run that has ended its session takes nothing more. A later message waits, and its sender is informed.
func TestClosedMailbox(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	runs := f.converses()
	f.worker()
	first := f.submit(f.task("a", "one"))
	run := <-runs
	if m := run.rest(); m.Text != "" {
		t.Fatalf("absorbed %q", m.Text)
	}
	if m := run.rest(); m.Text != "" { // asked again
		t.Errorf("absorbed %q", m.Text)
	}
	receipt, err := f.desk.Submit(t.Context(), f.task("a", "two"))
	if err != nil || receipt.Joins || receipt.Position != 1 {
		t.Errorf("receipt = %+v, %v", receipt, err)
	}
	if _, ok := run.host.Next(t.Context()); ok {
		t.Error("a closed mailbox took something")
	}
	run.end <- answer("one")
	f.ending(first)
	run = <-runs
	run.end <- answer("two")
	f.ending(receipt.ID)
}

// Messages of another person name their author.
func TestAbsorbedFromAnother(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	runs := f.converses()
	f.worker()
	f.submit(f.task("a", "one"))
	run := <-runs
	other := f.task("a", "two")
	other.Actor = "Bob"
	f.submit(other)
	if m := run.next(); m.Text != "Bob says:\n\ntwo" {
		t.Errorf("message = %q", m.Text)
	}
	run.end <- answer("one")
}

// A task that its source refuses ends by itself, and the ones behind it are taken. A task that cannot be briefed now,
// or that needs its own run, waits, and the ones behind it wait with it.
func TestAbsorbingIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		brief tasks.Brief
		err   error
		third bool // is absorbed
	}{
		"refused":     {err: &tasks.InputError{Sentence: "No."}, third: true},
		"later":       {err: &tasks.ErrLater{At: time.Now(), Why: "slow down"}},
		"error":       {err: errors.New("no answer")},
		"of its own":  {brief: tasks.Brief{Fresh: true}},
		"with a form": {brief: tasks.Brief{Schema: json.RawMessage(`{}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			runs := f.converses()
			var live atomic.Bool
			f.source.brief = func(t tasks.Task) (tasks.Brief, error) {
				if t.Prompt == "two" && live.Load() {
					return c.brief, c.err
				}
				return tasks.Brief{}, nil
			}
			f.worker()
			first := f.submit(f.task("a", "one"))
			run := <-runs
			live.Store(true)
			second, third := f.submit(f.task("a", "two")), f.submit(f.task("a", "three"))
			if c.third {
				run.take(run.next())
				if e := f.ending(second); e.Kind != tasks.Refused || e.Reason != "No." {
					t.Errorf("%+v", e)
				}
				run.end <- answer("one and three")
				f.equal("covers", f.ending(first).Covers, []string{third})
				return
			}
			if m, ok := run.host.Next(t.Context()); ok {
				t.Errorf("absorbed %q", m.Text)
			}
			if m := run.rest(); m.Text != "" {
				t.Errorf("absorbed %q", m.Text)
			}
			f.equal("states", []string{f.status(second).State, f.status(third).State}, []string{"waiting", "waiting"})
			live.Store(false)
			run.end <- answer("one")
			run = <-runs
			f.equal("follow-up", run.spec.Prompt.Text, "two")
			run.end <- answer("two")
		})
	}
}

// A run about a change absorbs what is said in the meantime; a task about another change is not absorbed.
func TestRunAboutAChangeAbsorbs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	runs := f.converses()
	f.source.brief = func(t tasks.Task) (tasks.Brief, error) {
		return tasks.Brief{Diff: t.Prompt != "mind the locks"}, nil
	}
	f.worker()
	first := f.submit(f.task("a", "review it"))
	run := <-runs
	second := f.submit(f.task("a", "mind the locks"))
	run.take(run.next())
	third := f.submit(f.task("a", "review another"))
	if m := run.rest(); m.Text != "" {
		t.Errorf("absorbed %q", m.Text)
	}
	run.end <- answer("fine")
	f.equal("covers", f.ending(first).Covers, []string{second})
	run = <-runs
	f.equal("follow-up", run.spec.ID, third)
	run.end <- answer("fine, too")
}

// joined is a run whose agent was given the second task of its thread and may have taken it up.
func (f *fleet) joined(runs <-chan *conversing, taken bool) (run *conversing, first, second string) {
	f.Helper()
	f.worker()
	first = f.submit(f.task("a", "one"))
	run = <-runs
	second = f.submit(f.task("a", "two"))
	if m := run.next(); taken {
		run.take(m)
	}
	return run, first, second
}

// A conversation that restarts within the run does not have the messages of the one before. Those wait for their own
// run, and nothing overtakes them.
func TestConversationBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"taken up": true, "given": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			runs := f.converses()
			run, first, second := f.joined(runs, taken)
			run.take(run.spec.Prompt)
			third := f.submit(f.task("a", "three"))
			if m, ok := run.host.Next(t.Context()); ok {
				t.Errorf("overtaken by %q", m.Text)
			}
			if m := run.rest(); m.Text != "" {
				t.Errorf("overtaken at rest by %q", m.Text)
			}
			// so that the next sender is informed correctly
			await.Until(t, "the second message waits", func() bool { return f.status(second).State == "waiting" })
			if r, err := f.desk.Submit(t.Context(), f.task("a", "four")); err != nil || r.Joins || r.Position != 3 {
				t.Errorf("receipt = %+v, %v", r, err)
			}
			run.end <- answer("one")
			f.equal("covers", f.ending(first).Covers, []string(nil))
			run = <-runs
			f.equal("follow-up", run.spec.ID, second)
			m := run.next()
			f.equal("behind it", m.Text, "three")
			run.take(m)
			run.end <- answer("two and three")
			f.equal("covers", f.ending(second).Covers, []string{third})
		})
	}
}

// A drained run resumes with what its conversation holds; messages it had only been given wait.
func TestDrainWithAbsorbed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	runs := f.converses()
	stop := f.worker()
	first := f.submit(f.task("a", "one"))
	run := <-runs
	second, third, fourth := f.submit(f.task("a", "two")), f.submit(f.task("a", "three")), f.submit(f.task("a", "four"))
	m := run.next()
	run.take(m)
	f.agent.note(m.ID) // it is in the conversation
	run.take(run.next())
	f.agent.note(run.next().ID) // dropped when the run was interrupted
	stop()
	if s := f.status(first); s.State != "waiting" || s.Attempt != 0 {
		t.Errorf("%+v", s)
	}
	f.equal("states", []string{f.status(second).State, f.status(third).State, f.status(fourth).State},
		[]string{"absorbed", "waiting", "waiting"})
	f.worker()
	run = <-runs
	if run.spec.Resume == nil || !strings.Contains(run.spec.Prompt.Text, "Continue where you stopped") {
		t.Errorf("prompt %q", run.spec.Prompt.Text)
	}
	want := turns("one", "two", "")[:2]
	f.equal("told to a CLI that cannot resume", run.spec.History, want)
	if m := run.next(); m.Text != "three" {
		t.Errorf("then came %q", m.Text)
	} else {
		run.take(m)
	}
	run.end <- answer("done")
	f.equal("covers", f.ending(first).Covers, []string{second, third})
	(<-runs).end <- answer("four")
	f.equal("covers", f.ending(fourth).Covers, []string(nil))
	f.stopAll()
	f.equal("final messages", f.closes(), map[string]int{first: 1, fourth: 1})
}

// A dead worker's run resumes with what its checkpoint holds. If it has to start over, it has absorbed nothing.
func TestCrashWithAbsorbed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		checkpoint, damaged bool
	}{
		"checkpoint": {true, false}, "damaged": {true, true}, "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &remote{fleet: newFleet(t)}
			runs := r.converses()
			stop := r.worker(dying)
			first := r.submit(r.task("a", "one"))
			run := <-runs
			second, third := r.submit(r.task("a", "two")), r.submit(r.task("a", "three"))
			m := run.next()
			run.take(m)
			if c.checkpoint {
				run.spec.Checkpoint(run.ctx, agent.Session{
					ID: "s", Data: []byte(line(run.spec.Prompt.ID) + line(m.ID)),
				})
			}
			run.take(run.next()) // after the checkpoint
			r.crash(first)
			stop()
			want := "waiting"
			if c.checkpoint {
				want = "absorbed"
			}
			r.equal("states", []string{r.status(second).State, r.status(third).State}, []string{want, "waiting"})
			if c.damaged {
				r.set("errand:checkpoint:"+first, "body", "lost")
			}
			r.worker()
			run = <-runs
			if goesOn := c.checkpoint && !c.damaged; goesOn != (run.spec.Resume != nil) {
				t.Errorf("resumes %+v", run.spec.Resume)
			}
			// Either message may have killed the worker, so the absorbed one is a suspect as well and is not absorbed
			// by another run.
			own, covers := []string{third}, []string{second}
			if !c.checkpoint || c.damaged {
				own, covers = []string{second, third}, nil
			}
			run.end <- answer("done")
			r.equal("covers", r.ending(first).Covers, covers)
			for _, id := range own {
				if s := r.status(id); s.State == "absorbed" {
					t.Errorf("%s is %s", id, s.State)
				}
				run = <-runs
				run.end <- answer("done")
				r.ending(id)
			}
		})
	}
}

// If a task waits to resume, cancelling it or a task that it absorbed ends all of them.
func TestCancelWhileItWaitsWithAbsorbed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	runs := f.converses()
	stop := f.worker()
	first := f.submit(f.task("a", "one"))
	run := <-runs
	second := f.submit(f.task("a", "two"))
	m := run.next()
	run.take(m)
	f.agent.note(m.ID)
	stop()
	s, err := f.desk.Cancel(t.Context(), second, "ann")
	if err != nil || s.State != "ended" || s.Ending.Kind != tasks.Cancelled || s.Ending.By != "ann" {
		t.Errorf("cancelled: %+v, %v", s, err)
	}
	f.worker()
	if e := f.ending(first); e.Kind != tasks.Cancelled || !slices.Equal(e.Covers, []string{second}) {
		t.Errorf("%+v", e)
	}
	f.stopAll()
	f.equal("final messages", f.closes(), map[string]int{first: 1})
}

// Cancelling an absorbed task stops its run. If the message was taken up, it ends with the run; otherwise it ends by
// itself and never runs.
func TestCancelAbsorbed(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"taken up": true, "given": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			_, first, second := f.joined(f.converses(), taken)
			if _, err := f.desk.Cancel(t.Context(), second, "ann"); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{first: 1}
			if e := f.ending(first); e.Kind != tasks.Cancelled || e.By != "ann" || len(e.Covers) == 1 != taken {
				t.Errorf("%+v", e)
			}
			if !taken {
				want[second] = 1
				f.ending(second)
			}
			f.stopAll()
			if s := f.status(second); s.State != "ended" || s.Ending.Kind != tasks.Cancelled || s.Ending.By != "ann" {
				t.Errorf("%+v", s)
			}
			f.equal("final messages", f.closes(), want)
			if n := len(f.agent.specs()); n != 1 {
				t.Errorf("%d runs", n)
			}
		})
	}
}

// A task that ended together with another can be retried without it, and the other way round.
func TestRetryAbsorbed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	runs := f.converses()
	f.worker()
	first := f.submit(f.task("a", "one"))
	run := <-runs
	second, third := f.submit(f.task("a", "two")), f.submit(f.task("a", "three"))
	run.take(run.next())
	run.take(run.next())
	if _, err := f.desk.Retry(t.Context(), second); !errors.Is(err, tasks.ErrNotEnded) {
		t.Errorf("retry of a live one: %v", err)
	}
	run.end <- answer("all")
	f.ending(first)
	for _, id := range []string{second, first} {
		if _, err := f.desk.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		run = <-runs
		f.equal("runs", run.spec.ID, id)
		if s := f.status(third); s.State != "ended" || s.Ending == nil || s.Ending.Kind != tasks.Answered {
			t.Errorf("%+v", s)
		}
		run.end <- answer("again " + id)
		f.events(id, "") // to their end
	}
	if s := f.status(second); s.Ending.Result.Text != "again "+second || s.Into != "" {
		t.Errorf("%+v", s)
	}
	s := f.status(third)
	if !strings.Contains(s.Ending.Sentence(), display.TaskID(first)) || s.Ending.Result.Text != "" {
		t.Errorf("its host was tried again: %+v", s.Ending)
	}
}

// A task whose workers died too often is given up together with the tasks it had absorbed.
func TestGivenUpWithAbsorbed(t *testing.T) {
	t.Parallel()
	r := &remote{fleet: newFleet(t)}
	runs := r.converses()
	r.worker(dying)
	first := r.submit(r.task("a", "one"))
	run := <-runs
	second := r.submit(r.task("a", "two"))
	m := run.next()
	run.take(m)
	run.spec.Checkpoint(run.ctx, agent.Session{ID: "s", Data: []byte(line(run.spec.Prompt.ID) + line(m.ID))})
	if err := r.rdb.HSet(t.Context(), "errand:task:"+first, "crashes", 2).Err(); err != nil {
		t.Fatal(err)
	}
	w := r.idle()
	for r.status(first).State != "ended" { // the owner may restore its claim in between
		rec, err := r.store.Get(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		r.lapse(rec.Thread)
		w.recovery.TakeOver(t.Context(), store.LiveRecord{Record: rec})
	}
	if e := r.ending(first); e.Kind != tasks.Lost || !slices.Equal(e.Covers, []string{second}) {
		t.Errorf("%+v", e)
	}
	if s := r.status(second); s.State != "ended" || s.Ending.Kind != tasks.Lost {
		t.Errorf("%+v", s)
	}
}
