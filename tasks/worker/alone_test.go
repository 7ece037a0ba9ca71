package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/tasks/worker/recovery"
)

// died leaves a task as that many dead workers do; the claim of the last one has not expired yet.
func (f *fleet) died(t tasks.Task, times int) {
	f.Helper()
	f.submit(t)
	fleet := f.open(store.Config{Redis: f.redis()}) // whose claims last
	for n := range times {
		rec, err := fleet.Get(f.Context(), t.ID)
		if err == nil && n > 0 {
			f.lapse(t.Thread)
			rec, err = fleet.Requeue(f.Context(), t.ID, rec.Delivery, rec.Fence, true)
		}
		if err == nil {
			var c *store.Claim
			if c, err = fleet.Claim(f.Context(), t.ID, rec.Delivery, "dead"); err == nil {
				err = c.Idle(f.Context(), "") // it had begun
			}
		}
		if err != nil {
			f.Fatal(err)
		}
	}
}

const noted = "noted" // claimedBy as the record has it

// claimedBy is the run of a suspect, claimed by a worker that is not started, beside another run or not. crashed is
// when its crash was found, in microseconds.
func (f *fleet) claimedBy(w *Worker, deaths int, beside bool, crashed string) *run {
	f.Helper()
	task := f.task("b", "x")
	if deaths == 0 {
		f.submit(task)
	} else {
		f.died(task, deaths)
		f.lapse(task.Thread)
	}
	rec, err := f.store.Get(f.Context(), task.ID)
	if err == nil && deaths > 0 {
		rec, err = f.store.Requeue(f.Context(), task.ID, rec.Delivery, rec.Fence, true)
	}
	if err == nil && crashed == "" {
		err = f.rdb.HDel(f.Context(), "errand:task:"+task.ID, "crashed").Err()
	} else if err == nil && crashed != noted {
		err = f.rdb.HSet(f.Context(), "errand:task:"+task.ID, "crashed", crashed).Err()
	}
	if err != nil {
		f.Fatal(err)
	}
	if beside {
		if _, err := w.slots.Take(tasks.Interactive); err != nil {
			f.Fatal(err)
		}
	}
	slot, err := w.slots.Take(tasks.Interactive)
	if err != nil {
		f.Fatal(err)
	}
	claim, err := w.cfg.Store.Claim(f.Context(), task.ID, rec.Delivery, w.id)
	if err != nil {
		f.Fatal(err)
	}
	r := w.hold(f.Context(), claim, slot)
	f.Cleanup(func() { r.giveUp() })
	return r
}

// idles waits until a suspect has its worker to itself, apart from the runs that it found there.
func (f *fleet) idles(id string) {
	f.Helper()
	await.Until(f, "task "+id+" waits to be alone", func() bool {
		s := f.status(id)
		return s.State == "running" && s.Why == whyAlone
	})
}

// running is an agent that reports each start and works until it is released.
func (f *fleet) running() (started chan string, finish chan struct{}) {
	started, finish = make(chan string, 10), make(chan struct{})
	f.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		started <- s.ID
		select {
		case <-finish:
		case <-ctx.Done(): // the test has failed
		}
		return answer("x"), nil
	}
	return started, finish
}

// The runs of a full worker that died live again at once on the free slots of the other workers, whatever these run.
// Before, each of them wanted a worker without other runs.
func TestRunsOfADeadWorkerStartAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	var all []string
	f.worker(func(c *Config) { c.Slots = 3 })
	for range 3 {
		all = append(all, f.submit(f.task(fmt.Sprint(len(all)), "x")))
		f.next(started)
	}
	var suspects []tasks.Task
	for range 4 {
		suspects = append(suspects, f.task(fmt.Sprint("dead", len(suspects)), "x"))
		f.died(suspects[len(suspects)-1], 1)
	}
	f.worker()
	all = append(all, f.submit(f.task("beside", "x")))
	f.next(started)
	f.worker(func(c *Config) { c.Slots = 2 })
	for _, s := range suspects {
		f.lapse(s.Thread)
		all = append(all, s.ID)
	}
	var again []string
	for range suspects {
		again = append(again, f.next(started))
	}
	slices.Sort(again)
	if !slices.Equal(again, all[len(all)-len(suspects):]) {
		t.Errorf("started: %v", again)
	}
	close(finish)
	for _, id := range all {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("ending of %s = %+v", id, e)
		}
	}
}

// A suspect looks a moment for a worker without other suspects, and then starts beside them.
func TestSuspectsSpread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there  int // suspects on the worker
		looked time.Duration
		later  bool
	}{
		"none there":       {0, 0, false},
		"one there":        {1, 0, true},
		"one there, again": {1, spreadStep, false},
		"two there":        {2, spreadStep, true},
		"many there":       {6, spreadStep, true},
		"many, again":      {6, spreadMost * spreadStep, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			w := f.idle(func(c *Config) { c.Slots = 8 })
			for range c.there {
				s, err := w.slots.Take(tasks.Interactive)
				if err != nil {
					t.Fatal(err)
				}
				if _, joined := s.JoinSuspects(c.there); !joined {
					t.Fatal("it is no suspect")
				}
			}
			r := f.claimedBy(w, 1, true, noted)
			rec := r.Claim.Record()
			rec.Crashed = rec.Started.Add(-c.looked)
			err := spread(r, rec)
			later, is := errors.AsType[*tasks.ErrLater](err)
			if is != c.later || is && later.At.After(time.Now().Add(spreadMost*spreadStep)) {
				t.Errorf("it waits: %v", err)
			}
		})
	}
}

// Tasks that ran together when two workers died are retried one after the other, and new tasks do not start beside
// them.
func TestSuspectsRunApart(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	var all []string
	for _, thread := range []string{"a", "b", "c"} {
		task := f.task(thread, "x")
		f.died(task, recovery.MaxCrashes-1)
		f.lapse(task.Thread)
		all = append(all, task.ID)
	}
	f.worker()
	order := []string{f.next(started)}
	fresh := f.submit(f.task("d", "x"))
	f.waits(fresh)
	for range 3 {
		finish <- struct{}{}
		order = append(order, f.next(started))
	}
	close(finish)
	for _, id := range append(all, fresh) {
		if e := f.ending(id); e.Kind != tasks.Answered || !slices.Contains(order, id) {
			t.Errorf("ending of %s = %+v", id, e)
		}
	}
	if f.agent.peak != 1 {
		t.Errorf("%d runs at once", f.agent.peak)
	}
}

// A suspect whose next death would be its last waits for the runs that it finds on its worker, and nothing else starts
// there in the meantime.
func TestSuspectWaitsToBeAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	suspect := f.task("b", "x")
	f.died(suspect, recovery.MaxCrashes-1)
	f.worker(func(w *Config) { w.Timing.Alone = 20 * time.Second })
	busy := f.submit(f.task("a", "x"))
	f.next(started)
	f.lapse(suspect.Thread)
	f.idles(suspect.ID)
	fresh := f.submit(f.task("c", "x"))
	f.waits(fresh)
	finish <- struct{}{}
	if e := f.ending(busy); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
	if id := f.next(started); id != suspect.ID || f.agent.peak != 1 {
		t.Errorf("%s was started, %d at once", id, f.agent.peak)
	}
	close(finish)
	f.ending(suspect.ID)
	f.ending(fresh)
	if f.agent.peak > 2 {
		t.Errorf("%d runs at once", f.agent.peak)
	}
}

// A suspect whose next death would be its last releases its worker if the other runs there last long. It still does not
// start beside them.
func TestSuspectGivesItsWorkerBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	suspect := f.task("b", "x")
	f.died(suspect, recovery.MaxCrashes-1)
	f.worker(func(c *Config) { c.Timing.Alone = 600 * time.Millisecond })
	busy := f.submit(f.task("a", "x"))
	f.next(started)
	f.lapse(suspect.Thread)
	f.idles(suspect.ID)
	fresh := f.submit(f.task("c", "x"))
	if id := f.next(started); id != fresh {
		t.Errorf("%s was started", id)
	}
	finish <- struct{}{}
	finish <- struct{}{}
	f.ending(busy)
	f.ending(fresh)
	if id := f.next(started); id != suspect.ID || f.agent.peak != 2 {
		t.Errorf("%s was started, %d at once", id, f.agent.peak)
	}
	close(finish)
	f.ending(suspect.ID)
}

// However long a suspect waits, it holds its worker for at most half of that time, and in the end for longer than any
// run takes.
func TestPatienceOfASuspect(t *testing.T) {
	t.Parallel()
	i := &isolation{Config: &Config{Timing: Timing{}.withDefaults()}}
	patience := func(waited time.Duration) time.Duration {
		return i.patience(store.Record{
			Crashes: recovery.MaxCrashes - 1, Crashed: time.Unix(1e9, 0), Started: time.Unix(1e9, 0).Add(waited),
		})
	}
	for waited, want := range map[time.Duration]time.Duration{
		0: 0, 9 * time.Second: 0, 10 * time.Second: 110 * time.Second,
	} {
		if got := patience(waited); got != want {
			t.Errorf("after %s: %s, want %s", waited, got, want)
		}
	}
	kept, most := 0, time.Duration(0)
	for waited := 2 * time.Minute; waited < 48*time.Hour; waited += time.Minute {
		if p := patience(waited); p > 0 {
			kept, most = kept+1, max(most, p)
		}
		if all := int(waited/time.Minute) - 1; 2*kept > all {
			t.Fatalf("keeps a worker for %d of the first %d minutes", kept, all)
		}
	}
	if most != longest {
		t.Errorf("waits for %s at most", most)
	}
	i.Policy.Limit = 4 * time.Hour
	if got := patience(100 * 365 * 24 * time.Hour); got > 4*time.Hour {
		t.Errorf("after a century: %s", got)
	}
	if got := patience(-time.Hour); got != 0 {
		t.Errorf("before the death of its worker: %s", got)
	}
}

// A record whose time of death is missing or impossible does not delay a suspect for long.
func TestSuspectAsksAgainSoon(t *testing.T) {
	t.Parallel()
	i, now := &isolation{Config: &Config{Timing: Timing{}.withDefaults()}}, time.Unix(1e9, 0)
	for crashed, soon := range map[time.Time]time.Duration{
		{}: 2 * postponeLeast, now: 2 * postponeLeast, now.Add(time.Hour): 2 * postponeLeast,
		now.AddDate(-100, 0, 0): 2 * postponeMost,
	} {
		rec := store.Record{Crashes: recovery.MaxCrashes - 1, Crashed: crashed, Started: now}
		if got := i.patience(rec); crashed.IsZero() && got != 0 {
			t.Errorf("patience %s", got)
		}
		later, ok := errors.AsType[*tasks.ErrLater](postpone(rec))
		if !ok || time.Until(later.At) > soon {
			t.Errorf("crashed %s: asks again at %v", crashed, later)
		}
	}
}

// A worker's death counts against a suspect only if no other run can have caused it; otherwise the task is not given up
// for it. For a task that kills its worker before its CLI starts, that means on an empty worker.
func TestDeathBesideOthersIsNotTheLast(t *testing.T) {
	t.Parallel()
	accept := func(w *Worker, r *run) error { _, err := w.accept(r); return err }
	asks := func(w *Worker, r *run) error { return w.isolation.isolate(r, true) }
	waits := func(w *Worker, r *run) error { return w.isolation.awaitSolitude(r, time.Millisecond) }
	for name, c := range map[string]struct {
		deaths int
		beside bool
		steps  []func(*Worker, *run) error
		later  bool
		idle   bool
		apart  bool // nothing new starts on the worker
	}{
		"claimed":      {recovery.MaxCrashes - 1, false, nil, false, true, false},
		"never died":   {0, true, nil, false, false, false},
		"empty worker": {recovery.MaxCrashes - 1, false, []func(*Worker, *run) error{accept}, false, false, true},
		"alone": {
			recovery.MaxCrashes - 1, false, []func(*Worker, *run) error{accept, asks}, false, false, true,
		},
		"beside others":             {recovery.MaxCrashes - 1, true, []func(*Worker, *run) error{accept}, true, true, false},
		"beside others, not strict": {1, true, []func(*Worker, *run) error{accept, asks}, false, false, false},
		"no patience":               {recovery.MaxCrashes - 1, true, []func(*Worker, *run) error{asks}, true, true, true},
		"out of patience":           {recovery.MaxCrashes - 1, true, []func(*Worker, *run) error{waits}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			w := f.idle(func(c *Config) { c.Timing.Alone = time.Hour })
			w.Examine(t.Context())
			r := f.claimedBy(w, c.deaths, c.beside, noted)
			var err error
			for _, step := range c.steps {
				if err == nil {
					err = step(w, r)
				}
			}
			if _, later := errors.AsType[*tasks.ErrLater](err); later != c.later || err != nil && !later {
				t.Errorf("it waits: %t, %v", later, err)
			}
			idle, err := f.rdb.HExists(t.Context(), "errand:task:"+r.Claim.ID(), "idle").Result()
			if err != nil || idle != c.idle {
				t.Errorf("idle: %t, %v", idle, err)
			}
			if _, err := w.slots.Take(tasks.Interactive); errors.Is(err, machine.ErrAlone) != c.apart {
				t.Errorf("another run: %v", err)
			}
		})
	}
}

// A suspect that checks, beside other runs, whether it was already answered is not given up for what those runs do to
// the worker.
func TestRecallBesideOthersIsNoDeath(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(func(c *Config) {
		c.Timing.Alone = time.Hour
		c.Store = f.open(store.Config{Redis: f.redis()}) // which renews no claim before the test has ended
	})
	// It has looked for an idle worker for long enough.
	r := f.claimedBy(w, recovery.MaxCrashes-1, true, strconv.FormatInt(time.Now().Add(-30*time.Minute).UnixMicro(), 10))
	if _, err := w.accept(r); err != nil {
		t.Fatal(err)
	}
	f.lapse(r.Claim.Thread())
	rec := r.Claim.Record()
	now, err := f.store.Requeue(t.Context(), rec.ID, rec.Delivery, rec.Fence, true)
	if err != nil || now.Crashes != rec.Crashes {
		t.Errorf("%d crashes, were %d: %v", now.Crashes, rec.Crashes, err)
	}
}

// If the time of a crash was never recorded, it counts from the next claim.
func TestSuspectWithoutTime(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle()
	r := f.claimedBy(w, 1, false, "")
	if rec := r.Claim.Record(); rec.Crashed.IsZero() || searched(rec) != 0 {
		t.Errorf("crashed %s, started %s", rec.Crashed, rec.Started)
	}
}

// A worker that can no longer run tasks releases a suspect that waits there for the other runs to end.
func TestUnableWorkerKeepsNoSuspect(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	suspect := f.task("b", "x")
	f.died(suspect, recovery.MaxCrashes-1)
	f.worker(lookOften, func(c *Config) { c.Timing.Alone = 20 * time.Second })
	busy := f.submit(f.task("a", "x"))
	f.next(started)
	f.lapse(suspect.Thread)
	f.idles(suspect.ID)
	f.agent.breaks(noCLI)
	f.worker(with(&fakeAgent{}))
	if e := f.ending(suspect.ID); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
	close(finish)
	f.ending(busy)
}

// A suspect whose worker dies while it waits there for the other runs has caused nothing: it is not given up, and no
// attempt is used.
func TestIdleSuspectIsNotGivenUp(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	suspect := f.task("b", "x")
	f.died(suspect, recovery.MaxCrashes)
	rec, err := f.store.Get(t.Context(), suspect.ID)
	if err != nil {
		t.Fatal(err)
	}
	// The note of the dead worker's Claim.Idle.
	if err := f.rdb.HSet(t.Context(), "errand:task:"+suspect.ID, "idle", "1", "why", whyAlone).Err(); err != nil {
		t.Fatal(err)
	}
	f.lapse(suspect.Thread)
	f.worker()
	if e := f.ending(suspect.ID); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
	if s := f.status(suspect.ID); s.Attempt != rec.Attempt {
		t.Errorf("attempt %d, was %d when the worker died", s.Attempt, rec.Attempt)
	}
}

// A suspect that waits for an idle worker holds no place under the fleet's limits, and takes one when it runs.
func TestIdleSuspectHoldsNoPlace(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits = tasks.Limits{Credential: 2}
	limited := func(c *Config) { c.Credential = "c" }
	started, finish := f.running()
	suspect := f.task("b", "x")
	f.died(suspect, recovery.MaxCrashes-1)
	f.worker(limited)
	busy := f.submit(f.task("a", "x"))
	f.next(started)
	f.lapse(suspect.Thread)
	f.idles(suspect.ID)
	f.worker(limited)
	fresh := f.submit(f.task("c", "x")) // there
	if id := f.next(started); id != fresh {
		t.Errorf("%s was started", id)
	}
	close(finish)
	for _, id := range []string{busy, fresh, suspect.ID} {
		f.ending(id)
	}
	f.noneCounts()
}
