package worker

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisclock"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/record"
)

// backlog creates n waiting tasks without deliveries, each in a separate thread. It does what Submit would do, but
// faster. Half of them are due.
func (f *fleet) backlog(n int) {
	f.Helper()
	const step = 500 // a pipeline must finish within the client's time limit, also under load
	for from := 0; from < n; from += step {
		_, err := f.rdb.Pipelined(f.Context(), func(p redis.Pipeliner) error {
			for i := range step {
				id, at := fmt.Sprintf("%016d-fake-backlog", from+i), int64(0)
				if i%2 == 0 {
					at = time.Now().Add(time.Hour).UnixMicro()
				}
				p.HSet(f.Context(), "errand:task:"+id, "thread", id, "class", tasks.Background, "state", "waiting",
					"delivery", 0, "fence", 0, "at", at)
				p.ZAdd(f.Context(), "errand:live", redis.Z{Member: id})
				p.ZAdd(f.Context(), "errand:waiting:"+id, redis.Z{Score: 1, Member: id})
			}
			return nil
		})
		if err != nil {
			f.Fatal(err)
		}
	}
}

// With a large backlog, a dead worker's run is still taken over and a task without a delivery still gets one.
func TestBacklogHoldsUpNoRecovery(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.backlog(50_000)
	dead := f.submit(f.task("a", "x"))
	if _, err := f.store.Claim(t.Context(), dead, 0, "dead"); err != nil { // and no worker renews it
		t.Fatal(err)
	}
	for range 3 {
		f.worker()
	}
	if e := f.ending(dead); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
}

// When the leader dies, another worker recovers.
func TestLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	term, err := f.store.Leader("recovery", 300*time.Millisecond).Lead(t.Context()) // and stops responding
	if err != nil || term == "" {
		t.Fatal(term, err)
	}
	task := f.task("a", "x")
	if _, _, err := f.store.Submit(t.Context(), store.Record{
		ID: task.ID, Thread: task.Thread, Class: task.Class, Task: format.JSON(task),
	}); err != nil {
		t.Fatal(err)
	}
	f.worker()
	f.ending(task.ID)
}

// asynq has no call that reorders pending deliveries. Its keys must be where we expect them.
func TestLayoutOfAsynq(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	ctx := t.Context()
	for _, id := range []string{"first", "archived", "second"} {
		if err := f.queue.Enqueue(ctx, id, tasks.Review, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.asynq.ArchiveTask(tasks.Review, "archived"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"second", "archived"} {
		if err := f.queue.ToFront(ctx, tasks.Review, id); err != nil {
			t.Fatal(err)
		}
	}
	taken := make(chan string, 2)
	server := asynq.NewServerFromRedisClient(f.rdb,
		asynq.Config{Concurrency: 1, Queues: map[string]int{tasks.Review: 1}, LogLevel: asynq.FatalLevel})
	if err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		taken <- t.ResultWriter().TaskID()
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	got := []string{<-taken, <-taken}
	server.Shutdown()
	if diff := cmp.Diff([]string{"second", "first"}, got); diff != "" {
		t.Error(diff)
	}
}

// A task whose delivery went to a worker that died, or to which Redis' reply was lost, before it was claimed gets another
// one when asynq's lease has ended. What a worker still has is left alone. A delivery that asynq cannot read holds up
// neither that nor the leader's other work.
func TestLostDeliveryIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	ctx := t.Context()
	const bad = "other." + tasks.Interactive // before the others, because Redis lists a small set in this order
	if _, err := f.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, "asynq:queues", bad)
		p.HSet(ctx, "asynq:{"+bad+"}:t:x", "msg", "unreadable", "state", "active")
		p.ZAdd(ctx, "asynq:{"+bad+"}:lease", redis.Z{Score: 1, Member: "x"})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	lost, held, cancelled := f.submit(f.task("a", "x")), f.submit(f.task("b", "x")), f.task("c", "x")
	cancelled.Class = tasks.Background
	f.submit(cancelled)
	f.put("errand:task:"+cancelled.ID, "cancel_cause", record.CauseUser) // by a process that died before it ended the task
	f.take(lost, time.Now().Add(-time.Second))
	f.take(held, time.Now().Add(time.Minute))
	recovery := f.idle().recovery
	for range 2 {
		recovery.Reconcile(ctx)
		recovery.Deliver(ctx)
	}
	active, err := f.asynq.ListActiveTasks(tasks.Interactive)
	if err != nil || len(active) != 2 {
		t.Fatalf("%d active deliveries, %v", len(active), err)
	}
	pending, err := f.asynq.ListPendingTasks(tasks.Interactive)
	if err != nil || len(pending) != 1 || pending[0].ID != queue.DeliveryID(lost, 1) {
		t.Errorf("pending deliveries: %+v, %v", pending, err)
	}
	if s := f.status(cancelled.ID); s.Ending == nil || s.Ending.Kind != tasks.Cancelled {
		t.Errorf("the cancelled task is %+v", s)
	}
	f.worker()
	f.ending(lost)
}

// take does what asynq does when a worker takes a delivery whose lease ends then.
func (f *fleet) take(id string, ends time.Time) {
	f.Helper()
	const key = "asynq:{" + tasks.Interactive + "}:"
	if _, err := f.rdb.TxPipelined(f.Context(), func(p redis.Pipeliner) error {
		p.LRem(f.Context(), key+"pending", 1, id)
		p.LPush(f.Context(), key+"active", id)
		p.HSet(f.Context(), key+"t:"+id, "state", "active")
		p.ZAdd(f.Context(), key+"lease", redis.Z{Score: float64(ends.Unix()), Member: id})
		return nil
	}); err != nil {
		f.Fatal(err)
	}
}

// Lost deliveries are looked for in every fifth pass, because that reads all that workers have.
func TestLostDeliveriesAreLookedForSeldom(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	recovery := f.idle().recovery
	recovery.Reconcile(t.Context())
	id := f.submit(f.task("a", "x"))
	f.take(id, time.Now().Add(-time.Second))
	for pass, want := range []int{0, 0, 0, 0, 1, 1} {
		recovery.Reconcile(t.Context())
		rec, err := f.store.Get(t.Context(), id)
		if err != nil || rec.Delivery != want {
			t.Errorf("pass %d: delivery %d, %v, want %d", pass, rec.Delivery, err, want)
		}
	}
}

// A leader whose clock is ahead leaves the deliveries of live workers alone, whose leases have ended to it.
func TestLeaderAheadLeavesDeliveries(t *testing.T) {
	t.Parallel()
	url, clock := redisclock.ForTest(t)
	f := newFleetOn(t, url)
	f.jump(clock, -30*time.Second) // so this process is ahead
	id := f.submit(f.task("a", "x"))
	f.take(id, time.Now().Add(-4*time.Second)) // in 26 s for Redis and the worker
	f.idle().recovery.Reconcile(t.Context())
	if rec, err := f.store.Get(t.Context(), id); err != nil || rec.Delivery != 0 {
		t.Errorf("delivery %d, %v", rec.Delivery, err)
	}
}

// The task of a dead worker's run comes before all that wait, and the first that its run had absorbed if that task is
// given up.
func TestAbsorbedOfTheDeadComeFirst(t *testing.T) {
	t.Parallel()
	for name, deaths := range map[string]int{"tried again": 0, "given up": record.MaxCrashes - 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			var list []string
			for range 3 {
				task := f.task("a", "x")
				list = append(list, task.ID)
				if _, _, err := f.store.Submit(t.Context(), store.Record{
					ID: task.ID, Thread: task.Thread, Class: task.Class, MergeKey: "k", Task: format.JSON(task),
				}); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.rdb.HSet(t.Context(), "errand:task:"+list[0], "crashes", deaths).Err(); err != nil {
				t.Fatal(err)
			}
			c, err := f.open(store.Config{Redis: f.redis()}).Claim(t.Context(), list[0], 0, "dead")
			if err == nil {
				err = c.Idle(t.Context(), "")
			}
			for range list[1:] {
				if err == nil {
					_, _, err = c.Take(t.Context(), false, nil)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			f.submit(f.task("b", "x"))
			f.lapse(c.Thread())
			f.idle().recovery.TakeOver(t.Context(), store.LiveRecord{Record: c.Record()})
			pending, err := f.rdb.LRange(t.Context(), asynqPendingKey(tasks.Interactive), 0, -1).Result()
			if err != nil {
				t.Fatal(err)
			}
			slices.Reverse(pending) // asynq takes from the right end
			want := []string{queue.DeliveryID(list[0], 1)}
			if deaths > 0 {
				want = []string{queue.DeliveryID(list[1], 1)}
			}
			if diff := cmp.Diff(want, pending[:len(pending)-1]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// asynqPendingKey is where asynq keeps the list of pending deliveries.
func asynqPendingKey(class string) string { return "asynq:{" + class + "}:pending" }
