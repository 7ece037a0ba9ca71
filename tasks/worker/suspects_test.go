package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
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
			_, err = fleet.Claim(f.Context(), t.ID, rec.Delivery, "dead")
		}
		if err != nil {
			f.Fatal(err)
		}
	}
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

// Tasks on which two workers have died run one after the other, beside others, and people are told why they wait.
func TestSuspectsRunOneAtATime(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	var suspects []string
	for _, thread := range []string{"a", "b", "c"} {
		task := f.task(thread, "x")
		f.died(task, record.MaxCrashes-1)
		f.lapse(task.Thread)
		suspects = append(suspects, task.ID)
	}
	f.worker(func(c *Config) { c.Slots = 4 })
	order := []string{f.next(started)}
	for _, id := range suspects {
		await.Until(f, id+" waits for its turn", func() bool {
			return id == order[0] || strings.Contains(f.status(id).Why, "two workers have died on")
		})
	}
	fresh := f.submit(f.task("d", "x"))
	if id := f.next(started); id != fresh {
		t.Errorf("%s was started beside the first", id)
	}
	for range suspects {
		finish <- struct{}{} // to either
	}
	close(finish)
	for _, id := range append(suspects, fresh) {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("ending of %s = %+v", id, e)
		}
	}
	if f.agent.peak != 2 {
		t.Errorf("%d runs at once", f.agent.peak)
	}
}
