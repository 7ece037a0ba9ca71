package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A moved task gets a new delivery, in its new queue and not before its time.
func TestMove(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for i, at := range []time.Time{{}, time.Now().Add(time.Hour)} {
			c := h.claim(s, h.submitTo(s, i, "t"))
			h.ok(c.Return(ctx, Wait{At: at}))
			rec := must(s.Get(ctx, c.ID()))
			h.ok(s.Move(ctx, rec, "gpu"))
			if err := s.Move(ctx, rec, "arm"); !errors.Is(err, ErrStale) {
				h.Errorf("moved twice: %v", err)
			}
			var want []Delivery
			if at.IsZero() {
				want = []Delivery{{ID: rec.ID, Queue: "gpu." + rec.Class, Number: 2}}
			}
			if diff := cmp.Diff(want, must(s.Ready(ctx, 10))); diff != "" {
				h.Error(diff)
			}
			rec = must(s.Get(ctx, rec.ID))
			if rec.Pool != "gpu" || rec.Queue() != "gpu."+rec.Class || rec.Delivery != 2 || rec.State != Waiting {
				h.Errorf("%+v", rec)
			}
			h.ok(s.Move(ctx, rec, ""))
			if rec = must(s.Get(ctx, rec.ID)); rec.Pool != "" || rec.Queue() != rec.Class || rec.Delivery != 3 {
				h.Errorf("back in the default pool: %+v", rec)
			}
			must(s.EndWaiting(ctx, rec.ID, nil))
		}
	})
}

// A task that runs or has ended stays, and so does one whose delivery has changed.
func TestMoveOfOthers(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submitTo(s, 1, "t"))
		if err := s.Move(ctx, c.Record(), "gpu"); !errors.Is(err, ErrStale) {
			h.Errorf("a running task: %v", err)
		}
		h.ok(c.Return(ctx, Wait{}))
		if err := s.Move(ctx, c.Record(), "gpu"); !errors.Is(err, ErrStale) {
			h.Errorf("a task with another delivery: %v", err)
		}
		if err := s.Move(ctx, Record{ID: task(9).ID}, "gpu"); !errors.Is(err, ErrNotFound) {
			h.Errorf("an unknown task: %v", err)
		}
	})
}

func TestWorkersOfAPool(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		taking := func(w Worker, want int) {
			h.Helper()
			if n := must(s.Workers.Beat(h.Context(), w)).Taking; n != want {
				h.Errorf("with %+v, %d workers of its pool take tasks, want %d", w, n, want)
			}
		}
		taking(Worker{ID: "a", Taking: true}, 1)
		taking(Worker{ID: "b", Pool: "gpu", Taking: true}, 1)
		taking(Worker{ID: "c", Pool: "gpu", Taking: true}, 2)
		taking(Worker{ID: "b", Pool: "gpu"}, 2) // cordoned; it would be the second
		taking(Worker{ID: "c", Pool: "gpu", Taking: true}, 1)
		if all := must(s.Workers.List(h.Context())); len(all) != 3 || all[0].Pool != "" || all[2].Pool != "gpu" {
			h.Errorf("%+v", all)
		}
	})
}
