package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// scoped is the n-th task, in a separate thread and in these scopes.
func (h *harness) scoped(s *Store, n int, scopes ...string) string {
	h.Helper()
	h.ok(h.rdb.ZAdd(h.Context(), "errand:pool:default", redis.Z{Member: "w"}).Err())
	rec := task(n)
	rec.Thread, rec.Scopes = fmt.Sprint("t", n), scopes
	_, created, err := s.Submit(h.Context(), rec)
	if err != nil || !created {
		h.Fatalf("submit %d: created %t, %v", n, created, err)
	}
	return rec.ID
}

// counted counts a scope's running tasks.
func (h *harness) counted(scope string) int64 {
	h.Helper()
	return must(h.rdb.ZCard(h.Context(), "errand:cap:"+scope).Result())
}

func TestFullScopeRefusesTheClaim(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		caps := []Cap{{"repo:", 2}, {"user:", 0}, {"team:", 3}}
		claim := func(n int, scopes ...string) (*Claim, error) {
			return h.ask(s, h.scoped(s, n, append(scopes, "team:t")...), caps...)
		}
		first := must(claim(1, "repo:a", "user:u"))
		must(claim(2, "repo:a", "user:u", "channel:x"))

		id := h.scoped(s, 3, "user:u", "repo:a")
		var full *Full
		if _, err := h.ask(s, id, caps...); !errors.As(err, &full) || full.Scope != "repo:a" {
			h.Errorf("claim = %v, want repo:a full", err)
		}
		if _, err := s.Claim(ctx, id, 0, "w", caps...); !errors.Is(err, ErrStale) {
			h.Errorf("claim with the same delivery = %v, want %v", err, ErrStale)
		}
		if _, err := h.ask(s, id, caps...); !errors.As(err, &full) ||
			full.Blocked != (Blocked{"repo:a", 2, 2, 1}) {
			h.Errorf("claim again = %+v, want repo:a full", err)
		}
		must(claim(4, "repo:b"))
		if _, err := claim(5); !errors.As(err, &full) || full.Scope != "team:t" {
			h.Errorf("claim = %v, want team:t full", err)
		}
		if n := h.counted("user:u") + h.counted("channel:x"); n != 0 {
			h.Errorf("%d counted where there is no cap", n)
		}
		if _, err := h.ask(s, id, Cap{"repo:", 3}); err != nil {
			h.Errorf("a worker with a higher cap was refused: %v", err)
		}
		h.ok(first.End(ctx, nil))
		if n := h.counted("repo:a"); n != 2 {
			h.Errorf("%d run in repo:a, want 2", n)
		}
	})
}

// TestCapsDoNotLeak ends runs in every possible way.
func TestCapsDoNotLeak(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		caps := []Cap{{"repo:", 1}, {"team:", 1}}
		ways := map[string]func(c *Claim){
			"end":    func(c *Claim) { h.ok(c.End(ctx, nil)) },
			"return": func(c *Claim) { h.ok(c.Return(ctx, Wait{})) },
			"crash":  func(c *Claim) { h.crash(c); h.takeover(s, c) },
			"crash, then withdrawn": func(c *Claim) {
				h.crash(c)
				h.takeover(s, c)
				must(s.EndWaiting(ctx, c.ID(), nil))
			},
			"released while running": func(c *Claim) { h.ok(c.Release(ctx)); h.takeover(s, c) },
			"end, then retry":        func(c *Claim) { h.ok(c.End(ctx, nil)); must(s.Retry(ctx, c.ID(), nil)) },
		}
		n := 0
		for way, leave := range ways {
			n++
			c := must(h.ask(s, h.scoped(s, n, "repo:a", "team:t"), caps...))
			if h.counted("repo:a") != 1 || h.counted("team:t") != 1 {
				h.Fatalf("%s: the run does not count", way)
			}
			h.ok(h.refresh(c))
			leave(c)
			_ = h.refresh(c) // a renewal in progress
			if h.counted("repo:a")+h.counted("team:t") != 0 {
				h.Errorf("%s: the run still counts", way)
			}
			if _, err := c.store.run(ctx, "release", c.ID(), c.Thread(), c.fence, c.token); err != nil &&
				!errors.Is(err, ErrStale) {
				h.Error(err)
			}
		}
	})
}

func (h *harness) refresh(c *Claim) error {
	_, _, err := c.refresh(h.Context())
	return err
}

// A run counts while it is renewed. Its lease outlives a claim that expired while Redis was frozen.
func TestCapIsLeased(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		key, one := "errand:cap:repo:a", Cap{"repo:", 1}
		c := must(h.ask(s, h.scoped(s, 1, "repo:a"), one))
		other := h.scoped(s, 2, "repo:a")
		refused := func(what string) {
			h.Helper()
			var full *Full
			if _, err := h.ask(s, other, one); !errors.As(err, &full) {
				h.Errorf("%s: claim = %v, want full", what, err)
			}
		}
		h.crash(c) // or its owner is alive, and Redis was frozen
		refused("claim lapsed")
		h.ok(h.refresh(c))
		h.ok(h.rdb.Del(ctx, key).Err()) // Redis came back without its last second
		h.ok(h.refresh(c))
		refused("forgotten and refreshed")
		if left := h.rdb.PTTL(ctx, key).Val(); left <= 15*time.Second || left > 75*time.Second {
			h.Errorf("the lease lasts for %s", left)
		}
		// It is not refreshed, and the task is not requeued.
		h.ok(h.rdb.ZAdd(ctx, key, redis.Z{Score: 1, Member: c.ID()}).Err())
		must(h.ask(s, other, one))
		if n := h.counted("repo:a"); n != 1 {
			h.Errorf("%d run in repo:a, want 1", n)
		}
	})
}

// TestCapsHoldInAFight lets workers race for tasks of few scopes.
func TestCapsHoldInAFight(t *testing.T) {
	onBoth(t, func(h *harness) {
		const tasks, workers = 24, 6
		ctx, s := h.Context(), h.store(Config{})
		caps := []Cap{{"repo:", 2}, {"team:", 3}}
		for n := range tasks {
			h.scoped(s, n, fmt.Sprint("repo:", n%3), "team:t")
		}
		var all, ended atomic.Int32
		var repo [3]atomic.Int32
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for ended.Load() < tasks {
					live, err := s.Live(ctx)
					if err != nil {
						h.Error(err)
						return
					}
					for _, r := range live {
						c, err := h.ask(s, r.ID, caps...)
						if err != nil {
							continue
						}
						mine := &repo[r.ID[15]%3]
						if n, m := all.Add(1), mine.Add(1); n > 3 || m > 2 {
							h.Errorf("%d run at once, %d in one repository", n, m)
						}
						err = h.refresh(c)
						all.Add(-1)
						mine.Add(-1)
						if err := errors.Join(err, c.End(ctx, nil), c.Release(ctx)); err != nil {
							h.Error(err)
						}
						ended.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if keys := must(h.rdb.Keys(ctx, "errand:cap:*").Result()); len(keys) > 0 {
			h.Errorf("left: %v", keys)
		}
	})
}

// TestLineForAScope keeps those that wait for a full scope in a line, by age, from which every way out of waiting
// takes them.
func TestLineForAScope(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		caps := []Cap{{"repo:", 1}}
		first := must(h.ask(s, h.scoped(s, 1, "repo:a"), caps...))
		ids := []string{h.scoped(s, 2, "repo:a"), h.scoped(s, 3, "repo:a"), h.scoped(s, 4, "repo:a")}
		places := func() (list []int) {
			for _, id := range ids {
				_, _ = h.ask(s, id, caps...)
				list = append(list, must(s.Get(ctx, id)).Blocked.Place)
			}
			return list
		}
		for range 2 { // the oldest task is first in line, regardless of who asked first
			_, _ = h.ask(s, ids[2], caps...)
			if diff := cmp.Diff([]int{1, 2, 3}, places()); diff != "" {
				h.Error(diff)
			}
		}
		must(s.EndWaiting(ctx, ids[0], nil))
		h.ok(first.End(ctx, nil))
		claimed := must(h.ask(s, ids[1], caps...))
		if claimed.Record().Blocked != (Blocked{}) {
			h.Errorf("claimed: %+v", claimed.Record().Blocked)
		}
		if diff := cmp.Diff([]int{0, 0, 1}, places()); diff != "" {
			h.Error(diff)
		}
		if keys := must(h.rdb.ZRange(ctx, "errand:line:repo:a", 0, -1).Result()); len(keys) != 1 {
			h.Errorf("in line: %v", keys)
		}
	})
}

// TestLentPlace lends the place of a run that waits for a person, and counts the run again when it continues.
func TestLentPlace(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		caps := []Cap{{"repo:", 1}}
		asks := must(h.ask(s, h.scoped(s, 1, "repo:a"), caps...))
		h.ok(asks.Lend(ctx))
		if _, _, err := asks.refresh(ctx); err != nil || h.counted("repo:a") != 0 {
			h.Errorf("%d count while it waits, %v", h.counted("repo:a"), err)
		}
		other := must(h.ask(s, h.scoped(s, 2, "repo:a"), caps...))
		h.ok(asks.TakeBack(ctx))
		if n := h.counted("repo:a"); n != 2 {
			h.Errorf("%d count, want both", n)
		}
		h.ok(asks.Lend(ctx))
		h.ok(asks.End(ctx, nil))
		h.ok(other.End(ctx, nil))
		if n := must(h.rdb.Exists(ctx, "errand:cap:repo:a").Result()); n != 0 {
			h.Error("a place leaked")
		}
		if left := must(h.rdb.HMGet(ctx, "errand:task:"+asks.ID(), "lent", "caps").Result()); left[0] != nil ||
			left[1] != nil {
			h.Errorf("left: %v", left)
		}
	})
}

// TestIdleDeathIsNotCounted lets a worker die before its task starts.
func TestIdleDeathIsNotCounted(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		for i, row := range []struct {
			act  func(c *Claim)
			want int // crashes and attempts after it
		}{
			{func(c *Claim) { h.ok(c.Idle(ctx, "x")) }, 0},
			{func(*Claim) {}, 1},
			{func(*Claim) {}, 1}, // no Idle("") since then
			{func(c *Claim) { h.ok(c.Idle(ctx, "x")); h.ok(c.Idle(ctx, "")) }, 2},
			{func(c *Claim) { h.ok(c.Idle(ctx, "")) }, 3},
		} {
			c := h.claim(s, id)
			row.act(c)
			h.crash(c)
			h.takeover(s, c)
			if rec := must(s.Get(ctx, id)); rec.Crashes != row.want || rec.Attempt != row.want {
				h.Errorf("step %d: %d crashes in %d attempts, want %d", i, rec.Crashes, rec.Attempt, row.want)
			}
		}
	})
}

// TestRemovedTaskHoldsNoPlace removes records, as the documentation tells operators to, of tasks that wait in a
// line or are in the
// run of another.
func TestRemovedTaskHoldsNoPlace(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		remove := func(id string) { h.ok(h.rdb.Del(ctx, "errand:task:"+id).Err()) }
		caps := []Cap{{"repo:", 1}}
		must(h.ask(s, h.scoped(s, 1, "repo:a"), caps...))
		ids := []string{h.scoped(s, 2, "repo:a"), h.scoped(s, 3, "repo:a"), h.scoped(s, 4, "repo:a")}
		for _, id := range ids {
			_, _ = h.ask(s, id, caps...)
		}
		remove(ids[0])
		_, _ = h.ask(s, ids[1], caps...)
		if place := must(s.Get(ctx, ids[1])).Blocked.Place; place != 1 {
			h.Errorf("the next is number %d", place)
		}
		remove(ids[1])
		h.ok(s.CallUp(ctx, Cap{"repo:", 2}))
		h.named(s, "called up", ids[2])
		remove(ids[2])
		h.ok(s.CallUp(ctx, Cap{"repo:", 2}))
		if keys := must(h.rdb.Keys(ctx, "errand:line:*").Result()); len(keys) > 0 {
			h.Errorf("left: %v", keys)
		}

		joined := func() int { return must(s.Counts(ctx)).Absorbed }
		for way, part := range map[string]func(c *Claim, id string){
			"set aside": func(_ *Claim, id string) { h.ok(s.SetAside(ctx, id)) },
			"parted":    func(c *Claim, _ string) { h.ok(c.Return(ctx, Wait{})) },
		} {
			h.empty()
			c := h.claim(s, h.put(s, kin(1), kin(2))[0])
			id := h.take(c)
			remove(id)
			if n := joined(); n != 1 {
				h.Errorf("%s: %d are absorbed", way, n)
			}
			if part(c, id); joined() != 0 {
				h.Errorf("%s: the removed one still counts", way)
			}
		}
	})
}

// TestNoSlot checks that a task shows why it waits now, not an earlier refusal.
func TestNoSlot(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		caps := []Cap{{"repo:", 1}}
		first := must(h.ask(s, h.scoped(s, 1, "repo:a"), caps...))
		id := h.scoped(s, 2, "repo:a")
		_, _ = h.ask(s, id, caps...)
		why := func() (string, Blocked) {
			h.ok(s.NoSlot(ctx, id, must(s.Get(ctx, id)).Delivery, "x"))
			rec := must(s.Get(ctx, id))
			return rec.Why, rec.Blocked
		}
		if why, b := why(); why != "" || b.Scope != "repo:a" {
			h.Errorf("while the scope is full: %q, %+v", why, b)
		}
		h.ok(first.End(ctx, nil))
		if why, b := why(); why != "x" || b != (Blocked{}) {
			h.Errorf("with a place and no slot: %q, %+v", why, b)
		}
		must(h.ask(s, id, caps...))
		if why, _ := why(); why != "" {
			h.Errorf("while it runs: %q", why)
		}

		thread := h.put(s, kin(5), kin(6))
		h.claim(s, thread[0])
		id = thread[1]
		if why, _ := why(); why != "" {
			h.Errorf("behind another of its thread: %q", why)
		}
	})
}
