package desk

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// A task has one delivery, however often it is submitted, and a new one when an operator has archived that.
func TestDeliver(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	task := f.task("a", "now")
	for range 2 {
		f.submit(task)
	}
	later := f.task("b", "later")
	later.NotBefore = time.Now().Add(time.Hour)
	f.submit(later)
	inspector := asynq.NewInspectorFromRedisClient(f.redis())
	look := func() {
		t.Helper()
		at := redis.Z{Score: 0, Member: task.ID}
		if err := f.redis().ZAdd(t.Context(), "errand:ready", at).Err(); err != nil {
			t.Fatal(err)
		}
		if err := f.queue.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...string) {
		t.Helper()
		pending, err := inspector.ListPendingTasks(tasks.Interactive)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range pending {
			got = append(got, p.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	look()
	check(task.ID)
	in := time.Now().Add(time.Minute).UnixMicro()
	if at, err := f.redis().ZScore(t.Context(), "errand:ready", task.ID).Result(); err != nil || at < float64(in) {
		t.Errorf("the next look for it is at %f: %v", at, err)
	}
	if err := f.redis().Del(t.Context(), "asynq:queues").Err(); err != nil { // Redis has lost it
		t.Fatal(err)
	}
	look()
	if err := inspector.DeleteTask(tasks.Interactive, task.ID); err != nil {
		t.Fatal(err)
	}
	look()
	check(task.ID)
	if err := inspector.ArchiveTask(tasks.Interactive, task.ID); err != nil {
		t.Fatal(err)
	}
	look()
	look()
	check(queue.DeliveryID(task.ID, 1))
}
