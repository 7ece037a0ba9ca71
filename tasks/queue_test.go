package tasks

import (
	"slices"
	"testing"

	"github.com/errand-fleet/errand/store"
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
			ID: task.ID, Thread: thread, Class: Review, Task: []byte("{}"), Scopes: scopes,
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
		if err := f.queue.Enqueue(ctx, submit(thread), Review, 0); err != nil {
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
	next, err := f.queue.redis.LRange(ctx, asynqPending(Review), -2, -1).Result()
	if err != nil || !slices.Equal(next, []string{second, DeliveryID(first, 1)}) { // the last is taken first
		t.Errorf("%v, %v", next, err)
	}
}

func TestDeliveryNumber(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		if got, err := DeliveryNumber("a", DeliveryID("a", n)); err != nil || got != n {
			t.Errorf("%d came back as %d, %v", n, got, err)
		}
	}
	for _, bad := range []string{"", "b", "a.r", "a.rx", "ab", "b.r1"} {
		if _, err := DeliveryNumber("a", bad); err == nil {
			t.Errorf("%q is taken for a delivery of a", bad)
		}
	}
}
