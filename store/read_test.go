package store

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

func z(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

func TestListInPages(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		var all, ended, running, waiting []string
		for n := range 12 {
			rec := task(n)
			rec.Thread = rec.ID
			_, _, err := s.Submit(ctx, rec)
			h.ok(err)
			all = append(all, rec.ID)
			switch n % 3 {
			case 0:
				must(s.EndWaiting(ctx, rec.ID, nil))
				ended = append(ended, rec.ID)
			case 1:
				h.claim(s, rec.ID)
				running = append(running, rec.ID)
			case 2:
				waiting = append(waiting, rec.ID)
			}
		}
		for state, want := range map[State][]string{"": all, Ended: ended, Running: running, Waiting: waiting} {
			slices.Reverse(want)
			for _, limit := range []int{0, 1, 3, 5, 100} {
				var got []string
				for before := ""; ; {
					page := must(s.List(ctx, ListQuery{State: state, Limit: limit, Before: before})).Records
					if limit > 0 && len(page) > limit {
						h.Errorf("a page of %d, limit %d", len(page), limit)
					}
					if len(page) == 0 {
						break
					}
					for _, r := range page {
						got = append(got, r.ID)
					}
					before = got[len(got)-1]
				}
				if !slices.Equal(got, want) {
					h.Errorf("%q by %d: %v, want %v", state, limit, got, want)
				}
			}
		}
		h.rdb.Del(ctx, "errand:task:"+ended[1]) // expired
		if got := must(s.List(ctx, ListQuery{State: Ended, Limit: 2})).Records; len(got) != 2 ||
			got[0].ID != ended[0] || got[1].ID != ended[2] {
			h.Errorf("over an expired record: %v", got)
		}
	})
}

func TestLive(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		if live, err := s.Live(ctx); len(live) != 0 || err != nil {
			h.Errorf("want no live tasks: %v, %v", live, err)
		}
		head := h.submit(s, 1)
		behind := h.submit(s, 2)
		alive := h.claim(s, head)
		other := task(3)
		other.Thread = "dead"
		_, _, err := s.Submit(ctx, other)
		h.ok(err)
		h.rdb.Del(ctx, "errand:claim:"+h.claim(s, other.ID).Thread())
		gone := h.submit(s, 4)
		h.rdb.Del(ctx, "errand:task:"+gone)
		must(s.EndWaiting(ctx, h.submit(s, 5), nil))
		must(s.Cancel(ctx, behind, "U1", "user"))

		live := must(s.Live(ctx))
		want := map[string]struct {
			state   State
			claimed bool
		}{head: {Running, true}, behind: {Waiting, false}, other.ID: {Running, false}}
		if len(live) != len(want) {
			h.Errorf("%d live, want %d", len(live), len(want))
		}
		for _, r := range live {
			if w := want[r.ID]; r.State != w.state || r.Claimed != w.claimed {
				h.Errorf("%s %s, claimed %t; want %+v", r.ID, r.State, r.Claimed, w)
			}
			full := must(s.Get(ctx, r.ID))
			if r.Task != nil || r.Fence != full.Fence || r.Thread != full.Thread || r.Delivery != full.Delivery ||
				r.CancelCause != full.CancelCause {
				h.Errorf("%+v, want the essence of %+v", r, full)
			}
		}
		if !slices.IsSortedFunc(live, func(a, b LiveRecord) int { return strings.Compare(a.ID, b.ID) }) {
			h.Error("not oldest first")
		}
		// Retried while its holder still posts: the claim is the old run's, and the record still has it.
		h.ok(alive.End(ctx, nil))
		again := must(s.Retry(ctx, head, nil))
		if live := must(s.Live(ctx)); live[0].State != Waiting || !live[0].Claimed {
			h.Errorf("tried again: %+v", live[0])
			// earlier waits do not count
		} else if due := live[0].Due(); !due.Equal(again.Retried) || !due.After(again.Created) {
			h.Errorf("due at %s, want %s", due, again.Retried)
		}
		h.ok(alive.Release(ctx))
		if live := must(s.Live(ctx)); live[0].Claimed {
			h.Error("claimed after the release")
		}
	})
}

func TestPlaces(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		ids := []string{h.submit(s, 1), h.submit(s, 2), h.submit(s, 3)}
		places := func(what string, ids []string, want ...int) {
			h.Helper()
			h.same(what, must(s.Places(ctx, must(s.Records(ctx, ids)))), want)
		}
		places("none runs", ids, 0, 1, 2)
		c := h.claim(s, ids[0])
		places("the first runs", ids, 0, 1, 2)
		h.ok(c.End(ctx, nil))
		places("it has ended", ids, 0, 0, 1)

		full := Cap{"repo:", 1}
		must(s.Claim(ctx, h.scoped(s, 4, "repo:a"), 0, "w", full))
		waiting := []string{h.scoped(s, 5, "repo:a"), h.scoped(s, 6, "repo:a"), h.scoped(s, 7, "repo:a")}
		for _, id := range waiting {
			_, err := h.ask(s, id, full)
			if _, refused := errors.AsType[*Full](err); !refused {
				h.Fatal(err)
			}
		}
		places("a limit is reached", waiting, 1, 2, 3)
		must(s.EndWaiting(ctx, waiting[0], nil))
		places("the first of the line is gone", waiting, 0, 1, 2)
	})
}

func TestNext(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		next := func(what, want string) {
			h.Helper()
			if got, err := s.Threads.Next(ctx, "t"); got.ID != want || (want == "") != errors.Is(err, ErrNotFound) {
				h.Errorf("%s: next is %q (%v), want %q", what, got.ID, err, want)
			}
		}
		next("nobody waits", "")
		second := h.submit(s, 2)
		c := h.claim(s, second)
		first := h.submit(s, 1)
		next("one runs", second)
		h.ok(c.Return(ctx, Wait{}))
		next("both wait", first)
		must(s.EndWaiting(ctx, first, nil))
		next("the first has ended", second)
		must(s.EndWaiting(ctx, second, nil))
		next("all have ended", "")
	})
}

func TestGetNothing(t *testing.T) {
	onBoth(t, func(h *harness) {
		if _, err := h.store(Config{}).Get(h.Context(), "1700000000000009-none"); !errors.Is(err, ErrNotFound) {
			h.Errorf("get = %v, want %v", err, ErrNotFound)
		}
	})
}

func TestPing(t *testing.T) {
	onBoth(t, func(h *harness) {
		s, network := h.behindProxy(Config{})
		h.ok(s.Ping(h.Context()))
		network.setCut(true)
		if err := s.Ping(h.Context()); err == nil {
			h.Error("Redis answers although it is gone")
		}
	})
}

// Two stores in one Redis share nothing.
func TestPrefix(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, a, b := h.Context(), h.store(Config{Prefix: "a:"}), h.store(Config{Prefix: "b:"})
		c := h.claim(a, h.submit(a, 1))
		h.ok(c.Append(ctx, event(1)))
		h.ok(c.SaveSession(ctx, Session{ID: "s"}))
		h.ok(a.Threads.Alias(ctx, "x", "y"))
		h.beat(a, Worker{ID: "w"})
		h.ok(c.End(ctx, nil))
		post, _, err := a.Outbox.Take(ctx, c.ID())
		h.ok(err)
		h.ok(a.Outbox.MarkPosted(ctx, post))
		for key := range h.dump() {
			if key[:2] != "a:" {
				h.Errorf("key %s is outside the prefix", key)
			}
		}
		if _, created, err := b.Submit(ctx, task(1)); err != nil || !created {
			h.Errorf("submit to the other store: created %t, %v", created, err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	one := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{})
	ring := redis.NewRing(&redis.RingOptions{})
	for _, c := range []redis.UniversalClient{one, cluster, ring} {
		defer c.Close()
	}
	for name, cfg := range map[string]Config{
		"no client":             {},
		"a cluster":             {Redis: cluster},
		"a ring":                {Redis: ring},
		"a cluster to block on": {Redis: one, Blocking: cluster},
		"no whole client":       {Redis: struct{ Client }{one}},
		"a slow refresh":        {Redis: one, Refresh: 1e9, ClaimTTL: 1e9},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := New(Config{Redis: one}); err != nil {
		t.Error(err)
	}
}
