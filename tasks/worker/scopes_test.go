package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/hibiken/asynq"
)

// waits returns when a task is blocked, was returned, or found no worker with room for it.
func (f *fleet) waits(id string) {
	f.Helper()
	await.Until(f, "task "+id+" waits", func() bool {
		rec, err := f.store.Get(f.Context(), id)
		if err != nil || rec.State != store.Waiting {
			return false
		}
		info, err := f.asynq.GetTaskInfo(rec.Queue(), id)
		return rec.Delivery > 0 || rec.Blocked != store.Blocked{} || err == nil && info.State == asynq.TaskStateRetry
	})
}

// next returns the task that starts next.
func (f *fleet) next(started <-chan string) string {
	f.Helper()
	select {
	case id := <-started:
		return id
	case <-time.After(await.Bound):
		f.Fatal("nothing started")
		return ""
	}
}

// noneCounts checks that no place under a cap is still taken.
func (f *fleet) noneCounts() {
	f.Helper()
	keys, err := f.rdb.Keys(f.Context(), "errand:cap:*").Result()
	if err != nil || len(keys) > 0 {
		f.Errorf("left: %v, %v", keys, err)
	}
}

// All workers together stay within the limits. A task that finds no place keeps its place in the thread and uses no
// attempt.
func TestLimitsHoldAcrossWorkers(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits = rights.Limits{User: 2}
	var mu sync.Mutex
	live, most := map[string]int{}, map[string]int{}
	count := func(who string, n int) {
		mu.Lock()
		defer mu.Unlock()
		live[who] += n
		most[who] = max(most[who], live[who])
	}
	started, finish := make(chan string, 10), make(chan struct{})
	f.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		who := s.Header[1]
		count(who, 1)
		defer count(who, -1)
		started <- s.ID
		select {
		case <-finish:
		case <-ctx.Done(): // the test has failed
		}
		return answer("x"), nil
	}
	var ids []string
	for i, who := range []string{"ann", "ann", "ann", "ann", "bob", "bob"} {
		task := f.task(fmt.Sprint(min(i, 2), who), "x") // two of Ann's in one thread
		task.Actor = who
		ids = append(ids, f.submit(task))
	}
	for range 2 {
		f.worker()
	}
	var order []string
	for range 3 {
		order = append(order, f.next(started))
	}
	for _, id := range ids {
		if !slices.Contains(order, id) {
			f.waits(id)
		}
	}
	finish <- struct{}{} // one place is free
	order = append(order, f.next(started))
	close(finish)
	for range 2 {
		order = append(order, f.next(started))
	}
	for _, id := range ids {
		f.ending(id)
		if s, err := f.desk.Status(t.Context(), id); err != nil || s.Attempt != 1 {
			t.Errorf("status = %+v, %v", s, err)
		}
	}
	if f.agent.peak != 3 || len(most) != 2 || most["source fake test by ann"] > 2 ||
		most["source fake test by bob"] > 2 {
		t.Errorf("%d runs at once, by person %v", f.agent.peak, most)
	}
	if slices.Index(order, ids[2]) > slices.Index(order, ids[3]) {
		t.Error("a thread changed its order")
	}
	f.stopAll()
	f.noneCounts()
}

// A drained, a cancelled and a crashed run free their places for others.
func TestLimitsDoNotLeak(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits = rights.Limits{User: 1}
	started := make(chan string, 10)
	f.agent.do = untilStopped(started)
	dead := f.task("c", "x")
	f.submit(dead)
	if _, err := f.store.Claim(t.Context(), dead.ID, 0, "dead", f.policy.Limits.Caps()...); err != nil {
		t.Fatal(err)
	}
	f.lapse(dead.Thread)
	stop := f.worker()
	if id := f.next(started); id != dead.ID {
		t.Errorf("%s runs", id)
	}
	other := f.submit(f.task("d", "x"))
	f.waits(other)
	stop()
	f.noneCounts()

	f.worker()
	for range 2 {
		id := f.next(started)
		if _, err := f.desk.Cancel(t.Context(), id, "ann"); err != nil {
			t.Fatal(err)
		}
		if e := f.ending(id); e.Kind != tasks.Cancelled {
			t.Errorf("ending = %+v", e)
		}
	}
	if f.agent.peak != 1 {
		t.Errorf("%d runs at once", f.agent.peak)
	}
	f.stopAll()
	f.noneCounts()
	if log := strings.Join(ids(f.agent.specs()), ", "); !strings.Contains(log, other) {
		t.Errorf("ran: %s", log)
	}
}

// Tasks that wait for the same limit start one after the other in the order of their classes and IDs, whichever of
// several workers has room, and a task that comes late takes no place before them.
func TestPlacesAreTakenInOrder(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits = rights.Limits{User: 1}
	started, finish := f.running()
	for range 3 {
		f.worker()
	}
	f.submit(f.task("first", "x"))
	f.next(started)
	byClass := map[string][]string{}
	for i := range 2 {
		for _, class := range slices.Backward(tasks.Classes) {
			task := f.task(fmt.Sprint(class, i), "x")
			task.Class = class
			byClass[class] = append(byClass[class], f.submit(task))
		}
	}
	var want, late, got []string
	for _, class := range tasks.Classes {
		for _, id := range byClass[class] {
			for inLine := false; !inLine; { // and not to try again after an error
				f.waits(id)
				rec, err := f.store.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				inLine = rec.Blocked.Scope != ""
			}
			want = append(want, id)
		}
	}
	for range want {
		task := f.task(fmt.Sprint("late", len(late)), "x")
		task.Class = tasks.Classes[len(tasks.Classes)-1]
		late = append(late, f.submit(task))
		finish <- struct{}{}
		got = append(got, f.next(started))
	}
	f.equal("order", got, want)
	close(finish)
	for _, id := range late {
		f.ending(id)
	}
}

// A task that waits has no delivery, so that nothing looks at it again and again: behind a limit and in a thread, a run
// takes one delivery, and two if its task was the first to be refused.
func TestWaitingTasksAreNotPolled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits = rights.Limits{User: 1}
	started, finish := f.running()
	f.worker()
	ids := []string{f.submit(f.task("first", "x"))}
	f.next(started)
	for i := range 8 {
		ids = append(ids, f.submit(f.task(fmt.Sprint(i/2), "x")))
		f.waits(ids[len(ids)-1])
	}
	for range ids[1:] {
		finish <- struct{}{}
		f.next(started)
	}
	close(finish)
	deliveries := 0
	for _, id := range ids {
		f.ending(id)
		deliveries += 1 + must(f.store.Get(t.Context(), id)).Delivery
	}
	if want := len(ids) + 4; deliveries > want {
		t.Errorf("%d deliveries of %d tasks, want at most %d", deliveries, len(ids), want)
	}
}

// A task that waits for others of its thread shows each new place there, and one that has always followed the running
// task, which it may join, shows none.
func TestPlaceInAThreadIsShown(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	f.worker()
	var ids []string
	for i := range 4 {
		task := f.task("a", "x")
		task.Options.Model = fmt.Sprint("model", i) // so that none joins another
		ids = append(ids, f.submit(task))
		if i == 0 {
			f.next(started)
		} else {
			f.waits(ids[i])
		}
	}
	seen := map[string]bool{}
	await := func(want string) {
		t.Helper()
		for !seen[want] {
			seen[<-f.source.waited] = true
		}
	}
	finish <- struct{}{}
	f.next(started)
	await(ids[2] + " Waiting: an earlier task of this thread is running")
	await(ids[3] + " Waiting: 2 tasks of this thread come first")
	close(finish)
	f.ending(ids[3])
	if strings.Contains(fmt.Sprint(seen), ids[1]) {
		t.Errorf("shown: %v", seen)
	}
}
