package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// TestReady follows a task through everything that gives it a delivery or makes one superfluous.
func TestReady(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		ready := func(when string, want ...Delivery) {
			h.Helper()
			if diff := cmp.Diff(want, must(s.Ready(ctx, 10))); diff != "" {
				h.Errorf("%s:\n%s", when, diff)
			}
		}
		over := func(id string) { // the time until which it was to be left alone
			h.ok(h.rdb.ZAddXX(ctx, "errand:ready", redis.Z{Score: 1, Member: id}).Err())
		}
		later := task(2)
		later.Thread, later.At = "later", time.Now().Add(time.Hour)
		_, _, err := s.Submit(ctx, later)
		h.ok(err)
		id := h.submit(s, 1)
		ready("the submitter enqueues it")
		over(id)
		ready("the submitter has had its time", Delivery{id, "review", 0, false})
		ready("it was named just now")
		soon := func() bool {
			at := must(h.rdb.ZScore(ctx, "errand:ready", id).Result())
			return int64(at) < micros(time.Now().Add(time.Minute))
		}
		over(id)
		ready("nobody says that it is in its queue", Delivery{id, "review", 0, false})
		if h.ok(s.Delivered(ctx, Delivery{ID: id, Number: 1})); !soon() {
			h.Error("it is left alone because of another delivery")
		}
		if h.ok(s.Delivered(ctx, Delivery{ID: id})); soon() {
			h.Error("it is in its queue, and looked for again")
		}

		h.ok(h.claim(s, id).Return(ctx, Wait{}))
		ready("returned", Delivery{id, "review", 1, false})
		over(id)
		ready("nobody took it", Delivery{id, "review", 1, false})
		h.ok(h.claim(s, id).Return(ctx, Wait{At: time.Now().Add(time.Hour)}))
		ready("returned for later")
		h.ok(h.rdb.HSet(ctx, "errand:task:"+id, "at", 0).Err())
		c := h.claim(s, id)
		h.crash(c)
		h.takeover(s, c)
		ready("its worker died", Delivery{id, "review", 3, false})

		over(id)
		over(later.ID)
		if n := len(must(s.Ready(ctx, 1))); n != 1 {
			h.Errorf("%d are named, want one", n)
		}
		must(s.EndWaiting(ctx, id, nil))
		h.ok(h.rdb.Del(ctx, "errand:ready").Err())
		ready("Redis has lost it")
		h.ok(s.Wake(ctx, id, later.ID))
		ready("it is due in an hour")
		over(later.ID)
		ready("it is due", Delivery{later.ID, "review", 0, false})
		must(s.Retry(ctx, id, nil))
		ready("retried", Delivery{id, "review", 4, false})
	})
}
