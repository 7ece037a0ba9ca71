package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/hold"
)

func TestFromSubmitToClose(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.do = func(_ context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		h.Event(agent.Event{Kind: agent.Text, Text: "Hel"})
		h.Event(agent.Event{Kind: agent.Text, Text: "lo"})
		h.Event(agent.Event{Kind: agent.ToolUse, Text: "Reading x", Tool: "Read"})
		return answer("Hello " + s.Prompt.Text), nil
	}
	f.worker()
	id := f.submit(f.task("a", "world"))
	if e := f.ending(id); e.Kind != tasks.Answered || e.Result.Text != "Hello world" || e.Sentence() != "" {
		t.Errorf("ending = %+v", e)
	}
	var text strings.Builder
	var kinds []agent.Kind
	for l, err := range f.desk.Follow(t.Context(), id, "") {
		if err != nil {
			t.Fatal(err)
		}
		if l.Event.Kind == agent.Text {
			text.WriteString(l.Event.Text)
		} else if !l.End {
			kinds = append(kinds, l.Event.Kind)
		}
	}
	if text.String() != "Hello" || len(kinds) != 1 || kinds[0] != agent.ToolUse {
		t.Errorf("events: text %q, then %v", text.String(), kinds)
	}
	s, err := f.desk.Status(t.Context(), id)
	if err != nil || s.State != "ended" || s.Ending.Result.Text != "Hello world" || s.Attempt != 1 {
		t.Errorf("status = %+v, %v", s, err)
	}
}

// The run does not wait for its report to open. Once it is open, the report gets the run's state.
func TestReportOpensBesideTheRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	running := make(chan struct{})
	f.source.open = running
	f.agent.do = func(ctx context.Context, _ agent.Spec, h agent.Host) (agent.Result, error) {
		h.Event(agent.Event{Kind: agent.Notice, Text: "nobody hears this"})
		close(running)
		await.Holds(ctx, func() bool {
			h.Event(agent.Event{Kind: agent.Notice, Text: "somebody may hear this"})
			f.source.mu.Lock()
			defer f.source.mu.Unlock()
			return len(f.source.told) > 0
		})
		return answer("x"), nil
	}
	f.worker()
	f.ending(f.submit(f.task("a", "x")))
	if got := f.source.told[0].Text; got != "somebody may hear this" {
		t.Errorf("the report got %q first", got)
	}
}

func TestSubmitTwiceIsOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	task := f.task("a", "x")
	first, err1 := f.desk.Submit(t.Context(), task)
	second, err2 := f.desk.Submit(t.Context(), task)
	if err := errors.Join(err1, err2); err != nil || !first.New || second.New {
		t.Errorf("first %+v, second %+v, %v", first, second, err)
	}
	f.worker()
	f.ending(task.ID)
	if third, err := f.desk.Submit(t.Context(), task); err != nil || third.New {
		t.Errorf("after the end: %+v, %v", third, err)
	}
	f.ending(f.submit(f.task("b", "another"))) // any effect of the third would have arrived earlier
	if n := len(f.agent.specs()); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}

// No task is lost when a submitter dies between storing and enqueueing.
func TestRecordWithoutDelivery(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	task := f.task("a", "x")
	if _, _, err := f.store.Submit(t.Context(), store.Record{
		ID: task.ID, Thread: task.Thread, Class: task.Class, Task: format.JSON(task),
	}); err != nil {
		t.Fatal(err)
	}
	f.worker()
	if e := f.ending(task.ID); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
}

func TestOneAtATimePerThreadInOrder(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	f.worker()
	var want []string
	for i := range 6 {
		task := f.task("a", fmt.Sprint(i))
		want = append(want, task.ID+" "+task.Prompt)
		f.submit(task)
	}
	f.ending(strings.Fields(want[5])[0])
	if diff := cmp.Diff(want, ids(f.agent.specs())); diff != "" {
		t.Error(diff)
	}
	if f.agent.most != 1 {
		t.Errorf("%d runs of one thread at once", f.agent.most)
	}
}

func TestFollowUpResumes(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	f.ending(f.submit(f.task("a", "one")))
	f.ending(f.submit(f.task("a", "two")))
	f.ending(f.submit(f.task("b", "elsewhere")))
	runs := f.agent.specs()
	if runs[0].Resume != nil || runs[2].Resume != nil {
		t.Error("a first run of a thread resumed something")
	}
	if r := runs[1].Resume; r == nil || string(r.Data) != "echo: one" || r.CostUSD != 0.01 ||
		runs[1].Prompt.Text != "two" {
		t.Errorf("second run: %+v", runs[1])
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 10)
	f.agent.do = untilStopped(started)
	f.worker()
	running := f.submit(f.task("a", "x"))
	waiting := f.submit(f.task("a", "y"))
	<-started
	for _, id := range []string{waiting, running} {
		for range 2 { // a second call changes nothing
			if _, err := f.desk.Cancel(t.Context(), id, "Ann"); err != nil {
				t.Fatal(err)
			}
		}
		if e := f.ending(id); e.Kind != tasks.Cancelled || e.By != "Ann" ||
			!strings.Contains(e.Sentence(), "Stopped by Ann") {
			t.Errorf("ending = %+v", e)
		}
	}
	if e := f.source.closed[running]; e.Partial() != "half" {
		t.Errorf("partial = %q", e.Partial())
	}
	if s, err := f.desk.Cancel(t.Context(), running, "Bob"); err != nil || s.State != "ended" || s.Ending.By != "Ann" {
		t.Errorf("cancel after the end: %+v, %v", s, err)
	}
	if _, err := f.desk.Cancel(t.Context(), "1700000000000000-fake-none", "Ann"); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("cancel of nothing: %v", err)
	}
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	fail := true
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		if fail {
			fail = false
			return agent.Result{Outcome: agent.Failed, Error: agent.NewError(agent.ClassModel, "404")}, nil
		}
		return answer("better"), nil
	}
	f.worker()
	id := f.submit(f.task("a", "x"))
	if e := f.ending(id); e.Kind != tasks.Failed || e.Sentence() == "" {
		t.Errorf("ending = %+v", e)
	}
	f.source.mu.Lock()
	delete(f.source.closed, id)
	f.source.mu.Unlock()
	if _, err := f.desk.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if e := f.ending(id); e.Kind != tasks.Answered || e.Result.Text != "better" {
		t.Errorf("ending after retry = %+v", e)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.source.brief = func(t tasks.Task) (tasks.Brief, error) {
		switch t.Prompt {
		case "not you":
			return tasks.Brief{}, &tasks.InputError{Sentence: "Only members may ask."}
		case "broken":
			return tasks.Brief{}, errors.New("the source is broken")
		}
		return tasks.Brief{}, nil
	}
	f.worker()
	if e := f.ending(f.submit(f.task("a", "not you"))); e.Kind != tasks.Refused ||
		e.Sentence() != "Only members may ask." {
		t.Errorf("refused: %+v", e)
	}
	missing := f.task("b", "x")
	missing.Repo = "acme/none"
	if e := f.ending(f.submit(missing)); e.Kind != tasks.Refused ||
		!strings.Contains(e.Reason, "repository not found") {
		t.Errorf("no repository: %+v", e)
	}
	gone := f.task("c", "x")
	gone.Dir = "/nowhere"
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		return agent.Result{}, agent.NewError(agent.ClassWorkspace, "working directory: no such directory")
	}
	if e := f.ending(f.submit(gone)); e.Kind != tasks.Failed || e.Reason == "" ||
		e.Result.Error.Class != agent.ClassWorkspace {
		t.Errorf("no directory: %+v", e)
	}
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs were tried, want 1", n)
	}
}

// A rate-limited source says when to come back, as often as necessary. No attempt is used.
func TestSourceAsksToWait(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var briefs, closes int
	f.source.brief = func(tasks.Task) (tasks.Brief, error) {
		if briefs++; briefs <= maxAttempts {
			return tasks.Brief{}, fmt.Errorf("ask who this is: %w",
				&tasks.ErrLater{At: time.Now(), Why: "rate limited"})
		}
		return tasks.Brief{}, nil
	}
	f.source.fail = func(attempt int) error {
		if closes = attempt; attempt < 3 {
			return &tasks.ErrLater{At: time.Now(), Why: "rate limited"}
		}
		return nil
	}
	f.worker()
	id := f.submit(f.task("a", "x"))
	if e := f.ending(id); e.Kind != tasks.Answered || briefs != maxAttempts+1 || closes != 3 {
		t.Errorf("%d briefs, %d closes, ending %+v", briefs, closes, e)
	}
	if s, err := f.desk.Status(t.Context(), id); err != nil || s.Attempt != 1 {
		t.Errorf("attempt %d, %v", s.Attempt, err)
	}
}

// A failing task is retried, then given up with a message. The error is redacted wherever it is stored: while the task
// waits, and in the ending.
func TestInfrastructureIsRetriedThenGivenUp(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	secret := f.hides()
	if err := f.rdb.ConfigSet(t.Context(), "rdbcompression", "no").Err(); err != nil { // DUMP compresses, too
		t.Fatal(err)
	}
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		f.searchRedis(secret)
		return agent.Result{}, fmt.Errorf("no fork for %s", secret)
	}
	f.worker()
	e := f.ending(f.submit(f.task("a", "x")))
	if n := len(f.agent.specs()); e.Kind != tasks.Failed || n != maxAttempts || e.Result.Error == nil ||
		e.Result.Error.Message != "no fork for [redacted]" {
		t.Errorf("%d attempts, ending %+v", n, e)
	}
	f.searchRedis(secret)
}

func TestFinalMessageIsTriedUntilItIsOut(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.source.fail = func(attempt int) error {
		if attempt < 2 {
			return errors.New("the source is down")
		}
		return nil
	}
	f.worker()
	id := f.submit(f.task("a", "x"))
	f.ending(id)
	if n := f.source.closes[id]; n != 2 {
		t.Errorf("closed %d times", n)
	}
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// A worker that shuts down returns its run without using an attempt. Another worker continues it in the same
// conversation.
func TestDrainHandsBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 10)
	f.agent.do = untilStopped(started)
	stop := f.worker()
	id := f.submit(f.task("a", "x"))
	<-started
	stop()
	s, err := f.desk.Status(t.Context(), id)
	if err != nil || s.State != "waiting" || s.Attempt != 0 {
		t.Fatalf("after the drain: %+v, %v", s, err)
	}
	f.agent.do = nil
	f.worker()
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
	second := f.agent.specs()[1]
	if second.Resume == nil || !strings.HasPrefix(string(second.Resume.Data), "so far") ||
		!strings.Contains(second.Prompt.Text, "interrupted") {
		t.Errorf("second run = %+v", second)
	}
}

// A worker that has stopped is not listed as ready for the rest of its last heartbeat.
func TestStoppedWorkerIsListedAsDraining(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	stop := f.worker(func(c *Config) { c.Timing.Beat = time.Hour })
	f.ending(f.submit(f.task("a", "x")))
	stop()
	workers, err := f.store.Workers.List(t.Context())
	if err != nil || len(workers) != 1 || !workers[0].Draining {
		t.Errorf("workers %+v, %v", workers, err)
	}
}

// The log of a worker says when a run starts, and how its task ends, with the class of the error.
func TestRunsAreLogged(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		return failed(agent.ClassAuth), nil
	}
	var logged bytes.Buffer
	stop := f.worker(func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	id := f.submit(f.task("a", "x"))
	f.ending(id)
	stop()
	for _, line := range []string{
		`msg="run started" run=` + id + " thread=fake/a source=fake attempt=1 worker=",
		`msg="task ended" run=` + id + " thread=fake/a source=fake attempt=1 worker=",
		" outcome=failed dur=0s err=auth\n",
	} {
		if !strings.Contains(logged.String(), line) {
			t.Errorf("no %s in\n%s", line, &logged)
		}
	}
}

// The claim of a dead worker expires. Another worker takes the task over, and gives it up if it keeps killing its
// workers.
func TestDeadWorkersTasksAreTakenOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	once, always := f.task("a", "x"), f.task("b", "y")
	for _, task := range []tasks.Task{once, always} {
		f.submit(task)
		if _, err := f.store.Claim(t.Context(), task.ID, 0, "dead"); err != nil { // and no worker renews it
			t.Fatal(err)
		}
	}
	for range record.MaxCrashes - 1 {
		rec, err := f.store.Get(t.Context(), always.ID)
		if err != nil {
			t.Fatal(err)
		}
		f.lapse(always.Thread)
		rec, err = f.store.Requeue(t.Context(), always.ID, rec.Delivery, rec.Fence, true)
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.store.Claim(t.Context(), always.ID, rec.Delivery, "dead")
		if err == nil {
			err = c.Idle(t.Context(), "") // it had begun
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := newTape()
	f.metered(p)
	if e := f.ending(once.ID); e.Kind != tasks.Answered {
		t.Errorf("taken over: %+v", e)
	}
	if e := f.ending(always.ID); e.Kind != tasks.Lost || e.Sentence() == "" {
		t.Errorf("given up: %+v", e)
	}
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs", n)
	}
	if n := strings.Count(strings.Join(p.heard(), "\n"), "returned interactive crash"); n != 2 {
		t.Errorf("the meter got %d crashes: %q", n, p.heard())
	}
}

// A task that has crashed too many workers does not run, even if it is delivered before the leader has ended it.
func TestTasksOfTooManyCrashesDoNotRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	id := f.submit(f.task("a", "x"))
	for range record.MaxCrashes {
		rec, err := f.store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.store.Claim(t.Context(), id, rec.Delivery, "dead")
		if err == nil {
			err = c.Idle(t.Context(), "") // it had begun
		}
		if err != nil {
			t.Fatal(err)
		}
		f.lapse("fake/a")
		if _, err := f.store.Requeue(t.Context(), id, rec.Delivery, c.Record().Fence, true); err != nil {
			t.Fatal(err)
		}
	}
	f.worker()
	if e := f.ending(id); e.Kind != tasks.Lost || len(f.agent.specs()) > 0 {
		t.Errorf("%d runs, %+v", len(f.agent.specs()), e)
	}
}

// lapse makes the claim of a thread expire now.
func (f *fleet) lapse(thread string) {
	f.Helper()
	if err := f.rdb.Del(f.Context(), "errand:claim:"+thread).Err(); err != nil {
		f.Fatal(err)
	}
}

// takeOver claims a running task as another worker does after a partition.
func (f *fleet) takeOver(id string) *store.Claim {
	f.Helper()
	rec, err := f.store.Get(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	var now store.Record
	for { // the owner, which still reaches Redis, may put the claim back in between
		f.lapse(rec.Thread)
		now, err = f.store.Requeue(f.Context(), id, rec.Delivery, rec.Fence, true)
		if !errors.Is(err, store.ErrStale) {
			break
		}
	}
	if err != nil {
		f.Fatal(err)
	}
	claim, err := f.store.Claim(f.Context(), id, now.Delivery, "other")
	if err != nil {
		f.Fatal(err)
	}
	return claim
}

// A run that has lost its claim stops, and nothing it does after that has an effect.
func TestLostClaimStopsTheRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 1)
	stopped := make(chan error, 1)
	f.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		started <- s.ID
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return answer("too late"), nil // it had finished at that very moment
	}
	p := newTape()
	stop := f.worker(func(c *Config) { c.Timing.Reconcile, c.Meter = time.Hour, p })
	id := f.submit(f.task("a", "x"))
	<-started
	other := f.takeOver(id)
	if err := <-stopped; !errors.Is(err, hold.ErrClaimLost) {
		t.Errorf("cause = %v", err)
	}
	stop() // all that the loser still writes is written
	f.tell(p, 0, "began", "ran done", "returned interactive claim_lost")
	if s, err := f.desk.Status(t.Context(), id); err != nil || s.State != "running" || s.Worker != "other" ||
		s.Attempt != 2 || s.Ending != nil {
		t.Errorf("the loser changed something: %+v, %v", s, err)
	}
	if err := other.End(t.Context(), format.JSON(tasks.Ending{Kind: tasks.Answered})); err != nil {
		t.Errorf("end of the new owner: %v", err)
	}
	if len(f.source.closed) > 0 {
		t.Error("the loser posted something")
	}
}

// asynq ends a handler's context when it thinks that its time is up. The run ignores that.
func TestRunIsDetachedFromAsynq(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var w *Worker
	ctx, asynqGivesUp := context.WithCancel(t.Context())
	f.agent.do = func(ctx context.Context, _ agent.Spec, _ agent.Host) (agent.Result, error) {
		asynqGivesUp()
		return answer("all the same"), ctx.Err()
	}
	w = f.idle()
	id := f.submit(f.task("a", "x"))
	if _, err := w.attempts.Process(ctx, tasks.Interactive, id, 0); err != nil {
		t.Error(err)
	}
	if e := f.ending(id); e.Kind != tasks.Answered || e.Result.Text != "all the same" {
		t.Errorf("ending = %+v", e)
	}
}

// An answer that the store would refuse is cut; the task does not run again.
func TestHugeAnswer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		return answer(strings.Repeat("<\x00", 300<<10)), nil
	}
	f.worker()
	e := f.ending(f.submit(f.task("a", "x")))
	if e.Kind != tasks.Answered || !strings.HasSuffix(e.Result.Text, "The log has all of it.]") ||
		len(e.Result.Text) < 100<<10 {
		t.Errorf("%s with %d bytes", e.Kind, len(e.Result.Text))
	}
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// A task of a source that no worker here knows ends. It is not treated as a task that kills its worker.
func TestUnknownSource(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	task := f.task("a", "x")
	task.Source = "elsewhere"
	f.submit(task)
	f.put("errand:task:"+task.ID, "attempt", strconv.Itoa(maxAttempts-1))
	f.worker()
	ctx := await.Context(t)
	for l, err := range f.desk.Follow(ctx, task.ID, "") {
		if err != nil {
			t.Fatal(err)
		}
		if l.End {
			break
		}
	}
	if s, err := f.desk.Status(t.Context(), task.ID); err != nil || s.Ending == nil || s.Ending.Kind != tasks.Failed {
		t.Errorf("status = %+v, %v", s, err)
	}
}

// If the CLI had not read a prompt when its run was interrupted, the next run sends it again.
func TestDrainBeforeThePromptWasRead(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 10)
	f.worker()
	f.ending(f.submit(f.task("a", "first")))
	f.agent.do = untilStopped(started)
	f.agent.unread = true
	id := f.submit(f.task("a", "second"))
	<-started
	f.stopAll()
	f.agent.do = nil
	f.worker()
	f.ending(id)
	runs := f.agent.specs()
	if last := runs[len(runs)-1]; last.Prompt.Text != "second" {
		t.Errorf("the resumed run got %q", last.Prompt.Text)
	}
}

// Automatic work leaves a slot for people.
func TestSlots(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 20)
	f.agent.do = untilStopped(started)
	f.worker(func(c *Config) { c.Slots = 3 })
	for i := range 5 {
		task := f.task(fmt.Sprint("r", i), "review")
		task.Class = tasks.Review
		f.submit(task)
	}
	<-started
	<-started
	urgent := f.submit(f.task("u", "urgent"))
	if id := <-started; id != urgent {
		t.Errorf("%s started before the urgent task", id)
	}
	if f.agent.peak != 3 {
		t.Errorf("%d runs at once, want 3", f.agent.peak)
	}
}

func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Repository = func(name string) (rights.Repository, bool) {
		return rights.Repository{Profile: agent.Read}, name == "acme/known"
	}
	f.policy.Redactor = agent.NewRedactor("the fleet's own secret")
	desk := desk.New(f.store, f.queue, f.policy, nil)
	ok := f.task("a", "x")
	for name, change := range map[string]func(*tasks.Task){
		"id":         func(t *tasks.Task) { t.ID = "x/../y" },
		"prompt":     func(t *tasks.Task) { t.Prompt = "  \n" },
		"terminal":   func(t *tasks.Task) { t.Prompt = "/clear" },
		"both":       func(t *tasks.Task) { t.Repo, t.Dir = "acme/known", "/x" },
		"repository": func(t *tasks.Task) { t.Repo = "acme/other" },
		"model":      func(t *tasks.Task) { t.Options.Model = "--dangerously-skip-permissions" },
		"agent":      func(t *tasks.Task) { t.Options.Agent = "a b" },
		"size":       func(t *tasks.Task) { t.Prompt = strings.Repeat("x", 2<<20) },
	} {
		task := ok
		change(&task)
		_, err := desk.Submit(t.Context(), task)
		if e, ok := errors.AsType[*tasks.InputError](err); !ok || e.Sentence == "" {
			t.Errorf("%s: %v, want an InputError", name, err)
		}
	}
	ok.Repo, ok.Profile, ok.Prompt = "acme/known", agent.Write, "here is the fleet's own secret"
	ok.Options.Limit = 100 * time.Hour
	if _, err := desk.Submit(t.Context(), ok); err != nil {
		t.Fatal(err)
	}
	rec, err := f.store.Get(t.Context(), ok.ID)
	if err != nil {
		t.Fatal(err)
	}
	var stored tasks.Task
	if err := json.Unmarshal(rec.Task, &stored); err != nil {
		t.Fatal(err)
	}
	if stored.Profile != agent.Read || stored.Options.Limit != time.Hour ||
		strings.Contains(stored.Prompt, "own secret") {
		t.Errorf("stored as %+v", stored)
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	if err := f.rdb.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := f.desk.Submit(t.Context(), f.task("a", "x"))
	if _, input := errors.AsType[*tasks.InputError](err); err == nil || input {
		t.Errorf("err = %v, want one that asks the sender to try again", err)
	}
}
