package tasks

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// died leaves a task as that many dead workers do; the claim of the last one has not lapsed yet.
func (f *fleet) died(t Task, times int) {
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
			_, err = fleet.Claim(f.Context(), t.ID, rec.Delivery, "dead")
		}
		if err != nil {
			f.Fatal(err)
		}
	}
}

// idles waits until a suspect has its worker to itself but for the runs that it found there.
func (f *fleet) idles(id string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
	defer cancel()
	for {
		s := f.status(id)
		if s.State == "running" && s.Why == whyAlone {
			return
		}
		if ctx.Err() != nil {
			f.Fatalf("task %s does not wait to be alone: %+v", id, s)
		}
		runtime.Gosched()
	}
}

// running is an agent that says what it begins and works until it is let go on.
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

// Tasks that ran together when their worker died are tried again one after the other, and what comes new does not start beside them.
func TestSuspectsRunApart(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	var all []string
	for _, thread := range []string{"a", "b", "c"} {
		task := f.task(thread, "x")
		f.died(task, 1)
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
		if e := f.ending(id); e.Kind != Answered || !slices.Contains(order, id) {
			t.Errorf("ending of %s = %+v", id, e)
		}
	}
	if f.agent.peak != 1 {
		t.Errorf("%d runs at once", f.agent.peak)
	}
}

// A suspect waits for the runs that it finds on its worker, and nothing else is started there meanwhile: for a while only, unless the next
// death would be its last.
func TestSuspectWaitsToBeAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deaths int
		beside bool
	}{
		"once":     {1, true},
		"the last": {maxCrashes - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			started, finish := f.running()
			suspect := f.task("b", "x")
			f.died(suspect, c.deaths)
			f.worker(func(c *WorkerConfig) { c.Timing.Alone = 600 * time.Millisecond })
			busy := f.submit(f.task("a", "x"))
			f.next(started)
			f.lapse(suspect.Thread)
			f.idles(suspect.ID)
			fresh := f.submit(f.task("c", "x"))
			f.waits(fresh)
			if c.beside {
				if id := f.next(started); id != suspect.ID {
					t.Errorf("%s was started", id)
				}
			} else {
				finish <- struct{}{}
				if e := f.ending(busy); e.Kind != Answered {
					t.Errorf("ending = %+v", e)
				}
				if id := f.next(started); id != suspect.ID || f.agent.peak != 1 {
					t.Errorf("%s was started, %d at once", id, f.agent.peak)
				}
			}
			close(finish)
			f.ending(suspect.ID)
			f.ending(fresh)
			if f.agent.peak > 2 {
				t.Errorf("%d runs at once", f.agent.peak)
			}
		})
	}
}

// A worker that cannot run tasks any more does not keep a suspect that waits there to be alone.
func TestUnableWorkerKeepsNoSuspect(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	suspect := f.task("b", "x")
	f.died(suspect, maxCrashes-1)
	f.worker(lookOften, func(c *WorkerConfig) { c.Timing.Alone = 600 * time.Millisecond })
	busy := f.submit(f.task("a", "x"))
	f.next(started)
	f.lapse(suspect.Thread)
	f.idles(suspect.ID)
	f.agent.breaks(noCLI)
	f.worker(with(&fakeAgent{}))
	if e := f.ending(suspect.ID); e.Kind != Answered {
		t.Errorf("ending = %+v", e)
	}
	close(finish)
	f.ending(busy)
}

// A suspect whose worker dies while it waits there to be alone has caused nothing: it is not given up, and no attempt is used.
func TestIdleSuspectIsNotGivenUp(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	suspect := f.task("b", "x")
	f.died(suspect, maxCrashes)
	rec, err := f.store.Get(t.Context(), suspect.ID)
	if err != nil {
		t.Fatal(err)
	}
	// What Claim.Idle of the worker that died had noted.
	if err := f.queue.redis.HSet(t.Context(), "errand:task:"+suspect.ID, "idle", "1", "why", whyAlone).Err(); err != nil {
		t.Fatal(err)
	}
	f.lapse(suspect.Thread)
	f.worker()
	if e := f.ending(suspect.ID); e.Kind != Answered {
		t.Errorf("ending = %+v", e)
	}
	if s := f.status(suspect.ID); s.Attempt != rec.Attempt {
		t.Errorf("attempt %d, was %d when the worker died", s.Attempt, rec.Attempt)
	}
}

// A suspect that waits to be alone holds no place under the fleet's limits, and has one when it runs.
func TestIdleSuspectHoldsNoPlace(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits = Limits{Credential: 2}
	limited := func(c *WorkerConfig) { c.Credential = "c" }
	started, finish := f.running()
	suspect := f.task("b", "x")
	f.died(suspect, maxCrashes-1)
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
