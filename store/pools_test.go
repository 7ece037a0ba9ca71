package store

import (
	"errors"
	"testing"
	"time"
)

// A moved task has one delivery, in its new queue, whatever had become of the one before.
func TestMove(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for i, at := range []time.Time{{}, time.Now().Add(time.Hour)} {
			id := h.submitTo(s, i, "t")
			rec := must(s.Get(ctx, id))
			h.ok(s.Enqueue(ctx, rec.Queue(), id, []byte("first"), at))
			h.ok(s.Pools.Move(ctx, rec, Move{
				Pool: "gpu", Last: id, Next: id + ".r1", Message: []byte("second"), At: at,
			}))
			if err := s.Pools.Move(ctx, rec, Move{Pool: "arm", Last: id, Next: id + ".r1"}); !errors.Is(err, ErrStale) {
				h.Errorf("moved twice: %v", err)
			}
			rec = must(s.Get(ctx, id))
			if rec.Pool != "gpu" || rec.Queue() != "gpu."+rec.Class || rec.Delivery != 1 || rec.State != Waiting {
				h.Errorf("%+v", rec)
			}
			if left := h.rdb.Exists(ctx, "asynq:{"+rec.Class+"}:t:"+id).Val(); left != 0 {
				h.Error("the old queue has the delivery")
			}
			h.ok(s.Pools.Move(ctx, rec, Move{Last: id + ".r1", Next: id + ".r2", At: at}))
			if rec = must(s.Get(ctx, id)); rec.Pool != "" || rec.Queue() != rec.Class || rec.Delivery != 2 {
				h.Errorf("back in the default pool: %+v", rec)
			}
			deliveries := func(queue string) int64 {
				key := "asynq:{" + queue + "}:"
				return h.rdb.LLen(ctx, key+"pending").Val() + h.rdb.ZCard(ctx, key+"scheduled").Val()
			}
			if own, pool := deliveries(rec.Class), deliveries("gpu."+rec.Class); own != int64(i+1) || pool != 0 {
				h.Errorf("%d deliveries in the new queue, %d in the old one", own, pool)
			}
		}
	})
}

// A task that runs or has ended stays, and so does one whose delivery has changed.
func TestMoveOfOthers(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submitTo(s, 1, "t"))
		if err := s.Pools.Move(ctx, c.Record(), Move{Pool: "gpu"}); !errors.Is(err, ErrStale) {
			h.Errorf("a running task: %v", err)
		}
		h.ok(c.Return(ctx, Wait{}))
		h.ok(s.Pools.Move(ctx, c.Record(), Move{Pool: "gpu", Next: "x"}))
		if err := s.Pools.Move(ctx, Record{ID: task(9).ID}, Move{Pool: "gpu"}); !errors.Is(err, ErrNotFound) {
			h.Errorf("an unknown task: %v", err)
		}
	})
}

func TestWorkersOfAPool(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		for _, w := range []Worker{{ID: "a"}, {ID: "b", Pool: "gpu"}, {ID: "c", Pool: "gpu"}} {
			_ = must(s.Workers.Beat(h.Context(), w))
		}
		if n := must(s.Workers.Beat(h.Context(), Worker{ID: "a"})).Alive; n != 1 {
			h.Errorf("%d workers of the default pool", n)
		}
		if n := must(s.Workers.Beat(h.Context(), Worker{ID: "b", Pool: "gpu"})).Alive; n != 2 {
			h.Errorf("%d workers of pool gpu", n)
		}
		if all := must(s.Workers.List(h.Context())); len(all) != 3 || all[0].Pool != "" || all[2].Pool != "gpu" {
			h.Errorf("%+v", all)
		}
	})
}
