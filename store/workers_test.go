package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWorkersBeat(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		if all, err := s.Workers.List(ctx); len(all) != 0 || err != nil {
			h.Errorf("no workers: %v, %v", all, err)
		}
		b := Worker{
			ID: "b", Host: "h1", Version: "v1", Pid: 7, Slots: 4, Running: 2, Memory: 5 << 30, Draining: true,
			Started: time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC), Seen: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
			Health: json.RawMessage(`{"claude":"2.0"}`), URL: "http://h1:8081",
		}
		h.beat(s, b)
		h.beat(s, Worker{ID: "a"})
		first := must(s.Workers.List(ctx))
		if len(first) != 2 {
			h.Fatalf("%d workers, want 2", len(first))
		}
		// Seen is by Redis' clock, and b was seen before a.
		if !first[1].Seen.Before(first[0].Seen) || !first[0].Seen.Before(b.Seen) {
			h.Errorf("seen %s and %s", first[0].Seen, first[1].Seen)
		}
		b.Seen = first[1].Seen
		if diff := cmp.Diff([]Worker{{ID: "a", Seen: first[0].Seen}, b}, first); diff != "" {
			h.Error(diff)
		}

		b.Draining, b.Running = false, 3
		h.beat(s, b)
		if again := must(s.Workers.List(ctx)); again[1].Running != 3 || again[1].Draining ||
			!again[1].Seen.After(b.Seen) {
			h.Errorf("after another beat: %+v", again[1])
		}

		h.lapse("errand:worker:a", 15*time.Second) // on miniredis b goes with it
		h.beat(s, b)
		if left := must(s.Workers.List(ctx)); len(left) != 1 || left[0].ID != "b" {
			h.Errorf("left: %+v, want b", left)
		}
		h.ok(h.rdb.ZAddXX(ctx, "errand:workers", z(1, "a")).Err()) // long ago
		h.beat(s, b)
		if n := h.rdb.ZCard(ctx, "errand:workers").Val(); n != 1 {
			h.Errorf("%d workers in the index, want 1", n)
		}
	})
}
