package desk

import (
	"slices"
	"testing"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/queue"
)

// Tasks that were called from a line are taken before those that came meanwhile, in their order.
func TestCalledTasksComeFirst(t *testing.T) {
	f := newFleet(t)
	ctx, limit := t.Context(), store.Cap{Scope: "user:", Max: 2}
	if _, err := f.store.Workers.Beat(ctx, store.Worker{ID: "w", Taking: true}); err != nil {
		t.Fatal(err)
	}
	submit := func(thread string, scopes ...string) string {
		task := f.task(thread, "x")
		rec, _, err := f.store.Submit(ctx, store.Record{
			ID: task.ID, Thread: thread, Class: tasks.Review, Task: []byte("{}"), Scopes: scopes,
		})
		if err != nil {
			t.Fatal(err)
		}
		return rec.ID
	}
	claim := func(id string) (*store.Claim, error) { return f.store.Claim(ctx, id, 0, "w", limit) }
	var runs []*store.Claim
	for _, thread := range []string{"a", "b"} {
		c, err := claim(submit(thread, "user:u"))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, c)
	}
	first := submit("c", "user:u")
	if _, err := claim(first); err == nil {
		t.Fatal("there was a place")
	}
	second := submit("d", "user:u")
	for _, thread := range []string{"e", "f"} {
		if err := f.queue.Enqueue(ctx, submit(thread), tasks.Review, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range runs {
		if err := c.End(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.queue.Deliver(ctx); err != nil {
		t.Fatal(err)
	}
	next, err := f.redis().LRange(ctx, "asynq:{review}:pending", -2, -1).Result()
	if err != nil || !slices.Equal(next, []string{second, queue.DeliveryID(first, 1)}) { // the last is taken first
		t.Errorf("%v, %v", next, err)
	}
}

// A task that had a place when it was submitted keeps its place in the queue while it waits for a slot.
func TestTaskWithAPlaceDoesNotComeFirst(t *testing.T) {
	f := newFleet(t)
	ctx := t.Context()
	if _, err := f.store.Workers.Beat(ctx, store.Worker{ID: "w", Taking: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.store.CallUp(ctx, store.Cap{Scope: "user:", Max: 2}); err != nil {
		t.Fatal(err)
	}
	older, called := f.submit(f.task("a", "x")), f.submit(f.task("b", "x"))
	key := "errand:task:" + called
	if !f.redis().HExists(ctx, key, "line").Val() {
		t.Fatal("it has no place in a line")
	}
	for _, err := range []error{ // five seconds later
		f.redis().HIncrBy(ctx, key, "awaited", -5_000_000).Err(),
		f.redis().ZIncrBy(ctx, "errand:ready", -5_000_000, called).Err(),
		f.queue.Deliver(ctx),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	next, err := f.redis().LRange(ctx, "asynq:{interactive}:pending", -2, -1).Result()
	if err != nil || !slices.Equal(next, []string{called, older}) { // the last is taken first
		t.Errorf("%v, %v", next, err)
	}
}
