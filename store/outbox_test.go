package store

import (
	"errors"
	"maps"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/redisclock"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// must2 panics if a step failed.
func must2[T any](_ T, _ bool, err error) {
	if err != nil {
		panic(err)
	}
}

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
		stale("put off by the first", s.Outbox.Postpone(ctx, first, Delay{}))
		take("leased to the second", id, 0)

		h.ok(s.Outbox.Postpone(ctx, second, Delay{At: time.Now().Add(time.Hour)}))
		take("put off", id, 0)
		h.overdue(id)
		third := take("due again", id, 3)
		h.ok(s.Outbox.Postpone(ctx, third, Delay{}))
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
		stale("put off after it was posted", s.Outbox.Postpone(ctx, fourth, Delay{}))
		take("posted still", id, 0)
	})
}

// A worker takes the messages of its sources only, however many others are due before them.
func TestOutboxOfSources(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for n := range 30 {
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

// A worker does not look at each message of the sources that it does not have: many would block Redis.
func TestOutboxOfAbsentSourcesIsNotRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t, redistest.Start(t), nil)
	ctx, s := h.Context(), h.store(Config{})
	for n := range 60 {
		h.ended(s, n)
	}
	must2(s.Outbox.Take(ctx, "", "slack"))
	h.ok(h.rdb.ConfigResetStat(ctx).Err())
	must2(s.Outbox.Take(ctx, "", "slack"))
	stats := must(h.rdb.Info(ctx, "commandstats").Result())
	calls := 0
	for _, m := range regexp.MustCompile(`calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
		calls += number(m[1])
	}
	if calls == 0 || calls > 30 {
		h.Errorf("%d commands to find nothing among 60 messages of another source", calls)
	}
}

// A day after its end, and not before, somebody takes the message of a source that no worker has.
func TestOutboxOfAbsentSourcesAfterADay(t *testing.T) {
	t.Parallel()
	url, clock := redisclock.ForTest(t)
	j := jumping{newHarness(t, url, nil), clock}
	ctx, s := j.Context(), j.store(Config{})
	id := j.ended(s, 1)
	for _, test := range []struct {
		ahead time.Duration
		want  string
	}{{23*time.Hour + 50*time.Minute, ""}, {24*time.Hour + 10*time.Minute, id}} {
		j.ahead(test.ahead)
		if p, _, err := s.Outbox.Take(ctx, "", "slack"); err != nil || p.ID != test.want {
			j.Errorf("after %s: took %q, %v; want %q", test.ahead, p.ID, err, test.want)
		}
	}
}

// A lease lasts a minute: an attempt takes up to 50 s.
func TestOutboxLeaseLastsAMinute(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.ended(s, 1)
		before := time.Now()
		must2(s.Outbox.Take(ctx, id))
		for _, key := range []string{"errand:outbox", "errand:outbox:test"} {
			end := time.UnixMicro(int64(must(h.rdb.ZScore(ctx, key, id).Result())))
			if end.Before(before.Add(time.Minute-time.Second)) || end.After(time.Now().Add(time.Minute+time.Second)) {
				h.Errorf("%s: the lease of %s ends %s", key, before, end)
			}
		}
	})
}

// The outbox says what went wrong, until that is mended.
func TestOutboxKeepsWhy(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id, other := h.ended(s, 1), h.ended(s, 2)
		check := func(what string, want Record, left Unposted) {
			h.Helper()
			got := must(s.Get(ctx, id))
			if got.Shown != want.Shown || got.Unposted != want.Unposted || got.Undelivered != want.Undelivered {
				h.Errorf("%s: %+v", what, got)
			}
			u := must(s.Outbox.Backlog(ctx))
			u.Oldest = time.Time{}
			if u != left {
				h.Errorf("%s: %+v, want %+v", what, u, left)
			}
		}
		check("at first", Record{}, Unposted{Endings: 2})
		p, _, err := s.Outbox.Take(ctx, id)
		h.ok(err)
		h.ok(s.Outbox.Postpone(ctx, p, Delay{Why: "no"}))
		check("refused", Record{Unposted: "no"}, Unposted{Endings: 2, Why: "no"})
		p, _, err = s.Outbox.Take(ctx, id)
		h.ok(err)
		h.ok(s.Outbox.Postpone(ctx, p, Delay{Shown: true}))
		check("posted but for its status", Record{Shown: true}, Unposted{Endings: 1})
		p, _, err = s.Outbox.Take(ctx, id)
		h.ok(err)
		h.ok(s.Outbox.GiveUp(ctx, p, "never"))
		check("given up", Record{Shown: true, Undelivered: "never"},
			Unposted{Endings: 1, GivenUp: 1, LastGivenUp: id})
		must(s.Retry(ctx, id, nil))
		check("tried again", Record{}, Unposted{Endings: 1})
		p, _, err = s.Outbox.Take(ctx, other)
		h.ok(err)
		h.ok(s.Outbox.MarkPosted(ctx, p))
		check("the other is posted", Record{}, Unposted{})
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
			"posted": s.Outbox.MarkPosted(ctx, old), "put off": s.Outbox.Postpone(ctx, old, Delay{}),
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
		maps.DeleteFunc(left, func(key string, _ any) bool { return strings.HasPrefix(key, "errand:tally:") })
		if len(left) != 0 {
			h.Errorf("a task that is gone left %v", left)
		}
	})
}
