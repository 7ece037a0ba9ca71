package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/redisclock"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// harness is one empty server with a separate client, so that tests do not read through the store.
type harness struct {
	*testing.T
	url  string
	rdb  *redis.Client
	mini *miniredis.Miniredis // nil on a real Redis
}

// onBoth runs a test on a real Redis and on miniredis: standalone mode and other packages' tests run on the latter.
func onBoth(t *testing.T, test func(*harness)) {
	t.Helper()
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(newHarness(t, redistest.Start(t), nil))
	})
	t.Run("miniredis", func(t *testing.T) { onMini(t, test) })
}

// inOneDay runs a test on both, where neither the day nor the hour ends during the test.
func inOneDay(t *testing.T, test func(*harness)) {
	t.Helper()
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		url, _ := redisclock.AtMidday(t)
		test(newHarness(t, url, nil))
	})
	t.Run("miniredis", func(t *testing.T) {
		onMini(t, func(h *harness) {
			h.mini.SetTime(time.Date(2040, 1, 2, 12, 30, 0, 0, time.UTC))
			test(h)
		})
	})
}

// onRedis runs a test only on a real Redis: miniredis takes up to 20 times as long for many steps, and other tests try
// the same scripts on it.
func onRedis(t *testing.T, test func(*harness)) {
	t.Helper()
	t.Parallel()
	test(newHarness(t, redistest.Start(t), nil))
}

// onMini runs a test only on miniredis.
func onMini(t *testing.T, test func(*harness)) {
	t.Helper()
	t.Parallel()
	mini := miniredis.RunT(t)
	test(newHarness(t, "redis://"+mini.Addr(), mini))
}

func newHarness(t *testing.T, url string, mini *miniredis.Miniredis) *harness {
	h := &harness{T: t, url: url, rdb: dial(t, url), mini: mini}
	h.empty()
	return h
}

// empty removes all data, and notes that the data began before the tests' tasks, so that none of them is in doubt.
func (h *harness) empty() {
	h.Helper()
	h.ok(h.rdb.FlushDB(h.Context()).Err())
	h.ok(h.rdb.HSet(h.Context(), "errand:epoch", "process", "", "since", 0).Err())
}

func dial(t *testing.T, url string) *redis.Client {
	t.Helper()
	return redistest.Client(t, url)
}

// passing is a hook that changes nothing.
type passing struct{}

func (passing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (passing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (passing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// store is one process of the fleet. cfg needs no client.
func (h *harness) store(cfg Config) *Store {
	h.Helper()
	if cfg.Redis == nil {
		cfg.Redis = h.rdb
	}
	s, err := New(cfg)
	if err != nil {
		h.Fatal(err)
	}
	s.Events.news.poll = 20 * time.Millisecond
	return s
}

// lapse lets a key expire, which must have a TTL of at most ttl.
func (h *harness) lapse(key string, ttl time.Duration) {
	h.Helper()
	left := must(h.rdb.PTTL(h.Context(), key).Result())
	if left <= 0 || left > ttl {
		h.Errorf("%s lives for %s, want at most %s", key, left, ttl)
	}
	if h.mini != nil {
		h.mini.FastForward(ttl)
	} else {
		h.rdb.Del(h.Context(), key)
	}
	if n := must(h.rdb.Exists(h.Context(), key).Result()); n != 0 {
		h.Errorf("%s did not lapse", key)
	}
}

// overdue moves an outbox item's time into the past, so that its lease ends or it is due.
func (h *harness) overdue(id string) {
	h.Helper()
	due := redis.Z{Score: 1, Member: id}
	h.ok(h.rdb.ZAddXX(h.Context(), "errand:outbox", due).Err())
	h.ok(h.rdb.ZAddXX(h.Context(), "errand:outbox:"+strings.Split(id, "-")[1], due).Err())
}

// dump reads all keys but that of empty, for tests that expect no change.
func (h *harness) dump() map[string]any {
	h.Helper()
	ctx, all := h.Context(), map[string]any{}
	for _, key := range must(h.rdb.Keys(ctx, "*").Result()) {
		if key == "errand:epoch" {
			continue
		}
		switch kind := must(h.rdb.Type(ctx, key).Result()); kind {
		case "hash":
			all[key] = must(h.rdb.HGetAll(ctx, key).Result())
		case "set":
			members := must(h.rdb.SMembers(ctx, key).Result())
			slices.Sort(members)
			all[key] = members
		case "zset":
			if key == "errand:ready" { // its times are by the clock of this process
				all[key] = must(h.rdb.ZRange(ctx, key, 0, -1).Result())
				continue
			}
			all[key] = must(h.rdb.ZRangeWithScores(ctx, key, 0, -1).Result())
		case "stream":
			all[key] = must(h.rdb.XRange(ctx, key, "-", "+").Result())
		case "list":
			all[key] = must(h.rdb.LRange(ctx, key, 0, -1).Result())
		case "string":
			all[key] = must(h.rdb.Get(ctx, key).Result())
		default:
			h.Fatalf("%s is a %s", key, kind)
		}
	}
	return all
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ok fails the test if a step failed.
func (h *harness) beat(s *Store, w Worker) {
	h.Helper()
	_, err := s.Workers.Beat(h.Context(), w)
	h.ok(err)
}

func (h *harness) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// task is the n-th task by time, in thread "t" by default.
func task(n int) Record {
	return Record{
		ID: fmt.Sprintf("17000000000%05d-test-x", n), Thread: "t", Class: "review", Task: json.RawMessage(`{"n":1}`),
	}
}

// submit submits task n and returns its ID.
func (h *harness) submit(s *Store, n int) string {
	h.Helper()
	rec, created, err := s.Submit(h.Context(), task(n))
	if err != nil || !created {
		h.Fatalf("submit %d: created %t, %v", n, created, err)
	}
	return rec.ID
}

// claim claims a task and expects no error.
func (h *harness) claim(s *Store, id string) *Claim {
	h.Helper()
	rec := must(s.Get(h.Context(), id))
	c, err := s.Claim(h.Context(), id, rec.Delivery, "w")
	if err != nil {
		h.Fatal(err)
	}
	return c
}

// crash deletes a running task's claim, as if the worker died.
func (h *harness) crash(c *Claim) {
	h.Helper()
	h.lapse("errand:claim:"+c.Thread(), 15*time.Second)
}

// takeover requeues it as the reconciler does.
func (h *harness) takeover(s *Store, c *Claim) {
	h.Helper()
	rec := must(s.Get(h.Context(), c.ID()))
	must(s.Requeue(h.Context(), c.ID(), rec.Delivery, rec.Fence, true))
}

// signal is a callback that can be waited for.
type signal[T any] chan T

func (s signal[T]) fire(v T) { s <- v }

func (s signal[T]) wait(h *harness) T {
	h.Helper()
	ctx := await.Context(h)
	select {
	case v := <-s:
		return v
	case <-ctx.Done():
		h.Fatal("nothing happened")
		panic("unreachable")
	}
}
