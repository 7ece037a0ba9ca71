package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
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

// idles waits until a suspect has its worker to itself, apart from the runs that it found there.
func (f *fleet) idles(id string) {
	f.Helper()
	await.Until(f, "task "+id+" waits to be alone", func() bool {
		s := f.status(id)
		return s.State == "running" && strings.Contains(s.Why, "without other runs")
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

// Tasks that ran together when two workers died are retried one after the other, and new tasks do not start beside
// them.
func TestSuspectsRunApart(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	var all []string
	for _, thread := range []string{"a", "b", "c"} {
		task := f.task(thread, "x")
		f.died(task, record.MaxCrashes-1)
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
	f.died(suspect, record.MaxCrashes-1)
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
	f.died(suspect, record.MaxCrashes-1)
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

// A worker that can no longer run tasks releases a suspect that waits there for the other runs to end.
func TestUnableWorkerKeepsNoSuspect(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	suspect := f.task("b", "x")
	f.died(suspect, record.MaxCrashes-1)
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
	f.died(suspect, record.MaxCrashes)
	rec, err := f.store.Get(t.Context(), suspect.ID)
	if err != nil {
		t.Fatal(err)
	}
	// The note of the dead worker's Claim.Idle.
	if err := f.rdb.HSet(t.Context(), "errand:task:"+suspect.ID, "idle", "1", "why", "it needs a worker without other runs").Err(); err != nil {
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
	f.policy.Limits = rights.Limits{User: 2}
	started, finish := f.running()
	suspect := f.task("b", "x")
	f.died(suspect, record.MaxCrashes-1)
	f.worker(func(c *Config) { c.Timing.Alone = 20 * time.Second })
	busy := f.submit(f.task("a", "x"))
	f.next(started)
	f.lapse(suspect.Thread)
	f.idles(suspect.ID)
	f.worker()
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
