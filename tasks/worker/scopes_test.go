package worker

import (
	"context"
	"errors"
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
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// waits returns when a task has been refused and will be delivered again.
func (f *fleet) waits(id string) {
	f.Helper()
	ctx := await.Context(f)
	for ctx.Err() == nil {
		if rec, err := f.store.Get(ctx, id); err == nil && rec.State == store.Waiting && rec.Delivery > 0 {
			return
		}
		for _, class := range tasks.Classes {
			if info, err := f.asynq.GetTaskInfo(class, id); err == nil && info.State == asynq.TaskStateRetry {
				return
			}
		}
	}
	f.Fatalf("task %s was not refused", id)
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

// looksInAnHour makes a task that waits look for a place in an hour, as if it had been far behind just now.
func (f *fleet) looksInAnHour(id string) {
	f.Helper()
	at := redis.Z{Score: float64(time.Now().Add(time.Hour).Unix()), Member: id}
	if err := f.rdb.ZAddXX(f.Context(), "asynq:{"+tasks.Interactive+"}:retry", at).Err(); err != nil {
		f.Fatal(err)
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
	f.policy.Limits = tasks.Limits{User: 2, Credential: 3}
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
		f.worker(func(c *Config) { c.Credential = "c" })
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
	f.policy.Limits = tasks.Limits{User: 1}
	started := make(chan string, 10)
	f.agent.do = untilStopped(started)
	dead := f.task("c", "x")
	f.submit(dead)
	if _, err := f.store.Claim(t.Context(), dead.ID, 0, "dead", f.policy.Limits.Caps("")...); err != nil {
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
	f.policy.Limits = tasks.Limits{User: 1}
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

// A task looks for a place the more rarely, the more tasks are before it in line: those near the head as soon as a task
// behind its thread, and all before a fast line comes to them. A free place wakes the head, whenever it would look.
func TestPlaceInLineDecidesWhenToLook(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle()
	for place, want := range map[int][2]time.Duration{
		1: {busyWait, busyWait}, 100: {busyWait, busyWait}, 500: {5 * time.Second, 15 * time.Second},
		1500: {15 * time.Second, 45 * time.Second}, 50_000: {15 * time.Second, 45 * time.Second},
	} {
		begun := time.Now()
		full := &store.Full{Blocked: store.Blocked{Scope: "user:u", Runs: 1, Max: 1, Place: place}}
		later, ok := errors.AsType[*tasks.ErrLater](w.unclaimed(t.Context(), "1-fake-a", 0, full))
		if !ok {
			t.Fatal("it does not wait")
		}
		if least, most := later.At.Sub(begun), time.Until(later.At); least < want[0] || most > want[1] {
			t.Errorf("place %d looks again after %v, want %v to %v", place, most, want[0], want[1])
		}
	}

	f.policy.Limits = tasks.Limits{User: 1}
	started, finish := f.running()
	first := f.task("a", "x")
	f.worker(func(c *Config) { c.Timing.Reconcile = time.Hour })
	f.submit(first)
	f.next(started)
	head := f.submit(f.task("b", "x"))
	f.waits(head)
	f.looksInAnHour(head)
	finish <- struct{}{}
	if id := f.next(started); id != head {
		t.Errorf("%s started", id)
	}
	close(finish)
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
