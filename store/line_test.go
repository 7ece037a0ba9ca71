package store

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// classed is the n-th task, of a class and in these scopes.
func (h *harness) classed(s *Store, n int, class string, scopes ...string) string {
	h.Helper()
	id := h.scoped(s, n, scopes...)
	h.ok(h.rdb.HSet(h.Context(), "errand:task:"+id, "class", class).Err())
	return id
}

// TestFreePlaceIsForTheFirst frees places while tasks wait for them. Whoever asks, from whatever process, the first in
// line gets the place: first a run that has lost its worker, unless it has lost several, then by class and age.
func TestFreePlaceIsForTheFirst(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, one, other := h.Context(), h.store(Config{}), h.store(Config{})
		caps := []Cap{{"repo:", 2}}
		running := []*Claim{
			must(h.ask(one, h.scoped(one, 1, "repo:a"), caps...)),
			must(h.ask(one, h.scoped(one, 2, "repo:a"), caps...)),
		}
		ids := []string{
			h.classed(one, 3, "background", "repo:a"), h.classed(one, 4, "interactive", "repo:a"),
			h.classed(one, 5, "review", "repo:a"), h.classed(one, 6, "interactive", "repo:a"),
			h.classed(one, 7, "unknown", "repo:a"), h.classed(one, 8, "background", "repo:a"),
			h.classed(one, 9, "background", "repo:a"),
		}
		for n, crashes := range map[int]int{8: 1, 9: 2} {
			for range crashes {
				c := h.claim(one, task(n).ID)
				h.ok(c.Idle(ctx, ""))
				h.crash(c)
				h.takeover(one, c)
			}
		}
		ask := func(s *Store, id string) (*Claim, *Full) {
			h.Helper()
			c, err := h.ask(s, id, caps...)
			full, ok := errors.AsType[*Full](err)
			if err != nil && !ok {
				h.Fatal(err)
			}
			return c, full
		}
		for _, id := range ids[:4] {
			if _, full := ask(one, id); full == nil {
				h.Errorf("%s was not refused", id)
			}
		}
		var order []string
		for len(running) > 0 {
			h.ok(running[0].End(ctx, nil))
			h.ok(running[0].Release(ctx))
			running = running[1:]
			for i := range ids { // the latest first, from another process; the last one has never asked before
				id := ids[len(ids)-1-i]
				if c, _ := ask(other, id); c != nil {
					order, running = append(order, id), append(running, c)
				}
			}
			ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(order, id) })
		}
		if diff := cmp.Diff([]string{
			task(8).ID, task(4).ID, task(6).ID, task(5).ID, task(3).ID, task(9).ID, task(7).ID,
		}, order); diff != "" {
			h.Errorf("order:\n%s", diff)
		}
		if keys := must(h.rdb.Keys(ctx, "errand:line:*").Result()); len(keys) > 0 {
			h.Errorf("left: %v", keys)
		}
	})
}

// TestLineHoldsUpNoOther lets the first in line not come for its place: because it waits for another cap, was
// cancelled, waits for its thread, or its worker died with the delivery.
func TestLineHoldsUpNoOther(t *testing.T) {
	onBoth(t, func(h *harness) {
		for name, c := range map[string]struct {
			scopes []string
			act    func(s *Store, first string)
		}{
			"another cap": {scopes: []string{"repo:a", "user:u"}, act: func(*Store, string) {}},
			"cancelled": {scopes: []string{"repo:a"}, act: func(s *Store, id string) {
				must(s.EndWaiting(h.Context(), id, nil))
			}},
			"busy thread": {scopes: []string{"repo:a"}, act: func(s *Store, id string) {
				h.ok(h.rdb.Set(h.Context(), "errand:claim:"+must(s.Get(h.Context(), id)).Thread, "lock x", 0).Err())
			}},
			"dead worker": {scopes: []string{"repo:a"}, act: nil},
		} {
			h.empty()
			ctx, s := h.Context(), h.store(Config{})
			caps := []Cap{{"repo:", 1}, {"user:", 1}}
			user := must(h.ask(s, h.scoped(s, 1, "user:u"), caps...))
			holder := must(h.ask(s, h.scoped(s, 2, "repo:a"), caps...))
			first, second := h.scoped(s, 3, c.scopes...), h.scoped(s, 4, "repo:a")
			for _, id := range []string{first, second} {
				if _, err := h.ask(s, id, caps...); err == nil {
					h.Errorf("%s: %s was not refused", name, id)
				}
			}
			h.ok(holder.End(ctx, nil))
			h.named(s, name+": a place is free", first)
			var full *Full
			_, err := h.ask(s, second, caps...)
			if !errors.As(err, &full) || full.Blocked != (Blocked{"repo:a", 0, 1, 2}) {
				h.Errorf("%s: the second in line: %v", name, err)
			}
			if c.act != nil {
				c.act(s, first)
				if _, err = h.ask(s, first, caps...); err == nil {
					h.Errorf("%s: the first in line was not refused", name)
				}
			} else { // its time to come is over
				h.ok(h.rdb.HIncrBy(ctx, "errand:task:"+first, "awaited", -5_000_001).Err())
				h.ok(s.CallUp(ctx, caps...))
			}
			h.named(s, name+": the first does not come", second)
			must(h.ask(s, second, caps...))
			h.ok(user.End(ctx, nil))
		}
	})
}

// A run that has lost its worker comes first in line until it runs again, and then no more.
func TestComesFirstUntilItRunsAgain(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s, caps := h.Context(), h.store(Config{}), Cap{"repo:", 1}
		lost := h.classed(s, 1, "background", "repo:a")
		c := must(h.ask(s, lost, caps))
		h.crash(c)
		h.takeover(s, c)
		place := func(n int, why string, want int) {
			h.Helper()
			holder := must(h.ask(s, h.scoped(s, n, "repo:a"), caps))
			rival := h.classed(s, n+1, "interactive", "repo:a")
			for _, id := range []string{rival, lost} {
				if _, err := h.ask(s, id, caps); err == nil {
					h.Fatalf("%s: %s was not refused", why, id)
				}
			}
			if got := must(s.Get(ctx, lost)).Blocked.Place; got != want {
				h.Errorf("%s: place %d, want %d", why, got, want)
			}
			must(s.EndWaiting(ctx, rival, nil))
			h.ok(holder.End(ctx, nil))
		}
		place(2, "its worker died", 1)
		c = must(h.ask(s, lost, caps))
		h.ok(c.Return(ctx, Wait{}))
		place(4, "it was returned before it began", 1)
		c = must(h.ask(s, lost, caps))
		h.ok(c.Idle(ctx, ""))
		h.ok(c.Return(ctx, Wait{}))
		place(6, "it has run again", 2)
	})
}

// While the caps are known, a task that has no place waits in line from its submission on, and so needs no delivery
// that is refused. Those before it count although they have not come yet.
func TestSubmitKnowsTheCaps(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		caps := []Cap{{"repo:", 2}, {"user:", 1}}
		blocked := func(n int, want Blocked, scopes ...string) string {
			h.Helper()
			id := h.scoped(s, n, scopes...)
			if got := must(s.Get(ctx, id)).Blocked; got != want {
				h.Errorf("task %d: %+v, want %+v", n, got, want)
			}
			return id
		}
		blocked(1, Blocked{}, "user:none") // no leader has named the caps
		blocked(2, Blocked{}, "user:none")
		h.ok(s.CallUp(ctx, caps...))
		first := blocked(3, Blocked{}, "user:u", "repo:a")
		second := blocked(4, Blocked{"user:u", 0, 1, 2}, "user:u", "repo:b")
		other := blocked(5, Blocked{}, "user:v", "repo:a")
		blocked(6, Blocked{}, "channel:c")
		h.named(s, "the desk enqueues what it submits")
		held := []*Claim{must(h.ask(s, other, caps...)), must(h.ask(s, first, caps...))}
		third := blocked(7, Blocked{"repo:a", 2, 2, 1}, "user:w", "repo:a")
		for _, c := range held {
			h.ok(c.End(ctx, nil))
		}
		h.named(s, "places are free", second, third)
		for _, id := range []string{second, third} {
			if c := must(h.ask(s, id, caps...)); c.Record().Delivery != 0 {
				h.Errorf("%s had delivery %d", id, c.Record().Delivery)
			}
		}
		waits := blocked(8, Blocked{"user:u", 1, 1, 1}, "user:u")
		h.ok(s.CallUp(ctx, caps[0])) // the other limit was removed
		h.named(s, "the limit is removed", waits)
		blocked(9, Blocked{}, "user:w")
	})
}
