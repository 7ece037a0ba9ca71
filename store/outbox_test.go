package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ended puts the n-th task into the outbox.
func (h *harness) ended(s *Store, n int) string {
	h.Helper()
	id := h.submit(s, n)
	must(s.EndWaiting(h.Context(), id, nil))
	return id
}

// The worker that ended a run should post first, with its open report; the others only if it does not.
func TestOutboxHeadStart(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for n, byHolder := range []bool{true, false} {
			c := h.claim(s, h.submit(s, n+1))
			h.ok(c.End(ctx, nil))
			if p, got, err := s.Outbox.Take(ctx, ""); got || err != nil {
				h.Errorf("another worker took %s at once, %v", p.ID, err)
			}
			which := c.ID()
			if !byHolder { // it died
				h.overdue(which)
				which = ""
			}
			if p, got, err := s.Outbox.Take(ctx, which); !got || err != nil || p.ID != c.ID() || p.Attempt != 1 {
				h.Errorf("took %t, %+v, %v", got, p, err)
			}
			h.ok(c.Release(ctx))
		}
	})
}

func TestOutboxLease(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.ended(s, 1)
		take := func(what, which string, want int) Post {
			h.Helper()
			p, got, err := s.Outbox.Take(ctx, which)
			if err != nil || got != (want > 0) || p.Attempt != want || got && p.ID != id {
				h.Errorf("%s: took %t, %s attempt %d, %v; want attempt %d of %s", what, got, p.ID,
					p.Attempt, err, want, id)
			}
			return p
		}
		stale := func(what string, err error) {
			h.Helper()
			if !errors.Is(err, ErrStale) {
				h.Errorf("%s = %v, want %v", what, err, ErrStale)
			}
		}
		first := take("at once", id, 1)
		take("leased", id, 0)
		take("leased, any", "", 0)
		h.overdue(id)
		second := take("lease over", "", 2)
		stale("posted by the first", s.Outbox.MarkPosted(ctx, first))
		stale("put off by the first", s.Outbox.Postpone(ctx, first, time.Time{}))
		take("leased to the second", id, 0)

		h.ok(s.Outbox.Postpone(ctx, second, time.Now().Add(time.Hour)))
		take("put off", id, 0)
		h.overdue(id)
		third := take("due again", id, 3)
		h.ok(s.Outbox.Postpone(ctx, third, time.Time{}))
		fourth := take("put off to now", id, 4)
		if got := must(s.Get(ctx, id)); got.Outbox != 4 {
			h.Errorf("%d attempts in the record, want 4", got.Outbox)
		}
		h.ok(s.Outbox.MarkPosted(ctx, fourth))
		if got := must(s.Get(ctx, id)); got.Outbox != -1 {
			h.Errorf("outbox %d, want -1", got.Outbox)
		}
		take("posted", id, 0)
		take("posted, any", "", 0)
		stale("put off after it was posted", s.Outbox.Postpone(ctx, fourth, time.Time{}))
		take("posted still", id, 0)
	})
}

// A worker takes the messages of its sources only, however many others are due before them.
func TestOutboxOfSources(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for n := range 150 {
			h.ended(s, n)
		}
		p, ok, err := s.Outbox.Take(ctx, "", "tes", "other")
		if ok || err != nil {
			h.Errorf("took %+v, %v", p, err)
		}
		rec := task(200)
		rec.ID = "1700000000000200-other-x"
		id := h.put(s, rec)[0]
		must(s.EndWaiting(ctx, id, nil))
		p, ok, err = s.Outbox.Take(ctx, "", "chat", "other")
		if !ok || err != nil || p.ID != id || p.Attempt != 1 {
			h.Errorf("took %+v, %v", p, err)
		}
	})
}

func TestOutboxOneTakerEach(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		const items = 5
		for n := range items {
			h.ended(s, n)
		}
		var taken atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					p, got, err := s.Outbox.Take(h.Context(), "")
					if err != nil {
						h.Error(err)
					}
					if !got {
						return
					}
					if taken.Add(1); p.Attempt != 1 {
						h.Errorf("%s was taken %d times", p.ID, p.Attempt)
					}
				}
			})
		}
		wg.Wait()
		if taken.Load() != items {
			h.Errorf("%d items taken, want %d", taken.Load(), items)
		}
	})
}

func TestOutboxAfterARetry(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.ended(s, 1)
		old, _, err := s.Outbox.Take(ctx, id)
		h.ok(err)
		must(s.Retry(ctx, id, nil))
		h.overdue(id) // if it were still there
		if _, got, err := s.Outbox.Take(ctx, id); got || err != nil {
			h.Errorf("a task that waits again is posted: %t, %v", got, err)
		}
		if err := s.Outbox.MarkPosted(ctx, old); !errors.Is(err, ErrStale) {
			h.Errorf("posted = %v, want %v", err, ErrStale)
		}
		must(s.EndWaiting(ctx, id, nil))
		fresh, _, err := s.Outbox.Take(ctx, id)
		h.ok(err)
		if fresh.Attempt != old.Attempt {
			h.Fatalf("attempt %d, want %d: the test wants the same number", fresh.Attempt, old.Attempt)
		}
		for name, err := range map[string]error{
			"posted": s.Outbox.MarkPosted(ctx, old), "put off": s.Outbox.Postpone(ctx, old, time.Time{}),
		} {
			if !errors.Is(err, ErrStale) {
				h.Errorf("%s = %v, want %v", name, err, ErrStale)
			}
		}
		h.ok(s.Outbox.MarkPosted(ctx, fresh))
	})
}

func TestOutboxTakesTheOldestAndSkipsTheLost(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		var ids []string
		for n := range 3 {
			ids = append(ids, h.ended(s, 9-n))
		}
		h.overdue(ids[1])
		h.ok(h.rdb.Del(ctx, "errand:task:"+ids[1]).Err()) // by hand, or by a Redis that evicts
		for _, want := range []string{ids[0], ids[2]} {
			if p, got, err := s.Outbox.Take(ctx, ""); err != nil || !got || p.ID != want {
				h.Errorf("took %t %s, %v; want %s", got, p.ID, err, want)
			}
		}
		if n := h.rdb.Exists(ctx, "errand:task:"+ids[1]).Val(); n != 0 {
			h.Error("Take recreated part of the record")
		}
		if _, got, err := s.Outbox.Take(ctx, ids[1]); got || err != nil {
			h.Errorf("took a lost item: %t, %v", got, err)
		}
	})
}

func TestPostedTasksExpire(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{Retention: time.Minute})
		id := h.ended(s, 1)
		post, _, err := s.Outbox.Take(ctx, id)
		h.ok(err)
		for _, key := range []string{"errand:task:" + id, "errand:events:" + id} {
			if ttl := h.rdb.PTTL(ctx, key).Val(); ttl > 0 {
				h.Errorf("%s expires before it is posted", key)
			}
		}
		h.ok(s.Outbox.MarkPosted(ctx, post))
		for _, key := range []string{"errand:task:" + id, "errand:events:" + id} {
			if ttl := h.rdb.PTTL(ctx, key).Val(); ttl <= 0 || ttl > time.Minute {
				h.Errorf("%s expires in %s, want within a minute", key, ttl)
			}
		}
		h.lapse("errand:task:"+id, time.Minute)
		h.rdb.Del(ctx, "errand:events:"+id)
		if _, err := s.Get(ctx, id); !errors.Is(err, ErrNotFound) {
			h.Errorf("get = %v, want %v", err, ErrNotFound)
		}
		if got := must(s.List(ctx, ListQuery{})).Records; len(got) != 0 {
			h.Errorf("listed: %v", got)
		}
		// Two index entries are left, and the leader removes them.
		h.ok(h.rdb.ZAddXX(ctx, "errand:expiring", z(1, id)).Err())
		next := h.submit(s, 2)
		must(s.Leader("x", time.Minute).Lead(ctx))
		for key, want := range map[string]int64{"errand:tasks": 1, "errand:expiring": 0} {
			if n := h.rdb.ZCard(ctx, key).Val(); n != want {
				h.Errorf("%s has %d members, want %d", key, n, want)
			}
		}
		must(s.EndWaiting(ctx, next, nil))
		post, _, err = s.Outbox.Take(ctx, next)
		h.ok(err)
		h.ok(s.Outbox.MarkPosted(ctx, post))
		h.rdb.Del(ctx, "errand:task:"+next, "errand:events:"+next, "errand:tasks", "errand:expiring", "errand:fence",
			"errand:looked", "errand:leader:x")
		left := h.dump()
		delete(left, "errand:tally:"+fmt.Sprint(dayOf(h.today())))
		if len(left) != 0 {
			h.Errorf("a task that is gone left %v", left)
		}
	})
}
