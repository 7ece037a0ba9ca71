package store

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestClaimRefusals(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		rows := []struct {
			name     string
			prepare  func(id string)
			delivery int
			want     error
		}{
			{"not found", func(id string) { h.ok(h.rdb.Del(ctx, "errand:task:"+id).Err()) }, 0, ErrNotFound},
			{"ended", func(id string) { must(s.EndWaiting(ctx, id, nil)) }, 0, ErrEnded},
			{"older delivery", func(id string) { must(s.Requeue(ctx, id, 0, 0, false)) }, 0, ErrStale},
			{"unknown delivery", func(string) {}, 7, ErrStale},
			{"older delivery of one that runs", func(id string) {
				must(s.Requeue(ctx, id, 0, 0, false))
				h.claim(s, id)
			}, 0, ErrStale},
			{"running", func(id string) { h.claim(s, id) }, 0, ErrRunning},
			{"running, its worker dead", func(id string) { h.crash(h.claim(s, id)) }, 0, ErrRunning},
			{"cancelled is no refusal", func(id string) { must(s.Cancel(ctx, id, "u", "user")) }, 0, nil},
			{"free", func(string) {}, 0, nil},
		}
		for n, row := range rows {
			rec := task(n)
			rec.Thread = row.name
			_, _, err := s.Submit(ctx, rec)
			h.ok(err)
			row.prepare(rec.ID)
			before := h.dump()
			_, err = s.Claim(ctx, rec.ID, row.delivery, "w")
			if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
				h.Errorf("%s: claim = %v, want %v", row.name, err, row.want)
			}
			if diff := cmp.Diff(before, h.dump()); err != nil && diff != "" {
				h.Errorf("%s: a refusal changed something:\n%s", row.name, diff)
			}
		}
	})
}

func TestClaimGivesTheRunningRecord(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		id := h.submit(s, 1)
		must(s.Cancel(h.Context(), id, "U1", "user"))
		c, err := s.Claim(h.Context(), id, 0, "worker-7")
		h.ok(err)
		got := c.Record()
		if diff := cmp.Diff(must(s.Get(h.Context(), id)), got); diff != "" {
			h.Error(diff)
		}
		want := task(1)
		want.State, want.Attempt, want.Worker, want.Fence = Running, 1, "worker-7", c.Fence()
		want.CancelBy, want.CancelCause = "U1", "user"
		want.Created, want.Started = got.Created, got.Started
		want.Runs = []Run{{Worker: "worker-7", Started: got.Started}}
		if diff := cmp.Diff(want, got); diff != "" {
			h.Error(diff)
		}
		if got.Started.IsZero() || c.Fence() == 0 || c.ID() != id || c.Thread() != "t" {
			h.Errorf("claim of %s in %s with fence %d started at %s", c.ID(), c.Thread(), c.Fence(), got.Started)
		}
	})
}

func TestTwoClaimantsOneWinner(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		id := h.submit(s, 1)
		var mu sync.Mutex
		var won []*Claim
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				c, err := s.Claim(h.Context(), id, 0, "w")
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, c)
				} else if !errors.Is(err, ErrRunning) {
					h.Errorf("a loser got %v, want %v", err, ErrRunning)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			h.Errorf("%d claims of one task, want 1", len(won))
		}
	})
}

func TestThreadIsFirstInFirstOut(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		var ids []string
		for _, n := range rand.Perm(6) { // in any order of arrival
			ids = append(ids, h.submit(s, n))
		}
		other := task(0)
		other.ID, other.Thread = "1600000000000000-test-other", "other"
		_, _, err := s.Submit(ctx, other)
		h.ok(err)

		var order []string
		for range ids {
			var won *Claim
			for _, id := range ids {
				if slices.Contains(order, id) {
					continue
				}
				switch c, err := h.ask(s, id); {
				case err == nil && won == nil:
					won = c
				case err == nil:
					h.Fatalf("%s was claimed beside %s", id, won.ID())
				case !errors.Is(err, ErrBusy):
					h.Fatalf("claim = %v, want %v", err, ErrBusy)
				}
			}
			order = append(order, won.ID())
			h.ok(won.End(ctx, nil))
			// The ended task's holder still posts and cleans up: the next one waits for the release.
			for _, id := range ids {
				if _, err := h.ask(s, id); !errors.Is(err, ErrBusy) && !errors.Is(err, ErrEnded) {
					h.Fatalf("claim before the release = %v, want %v", err, ErrBusy)
				}
			}
			h.ok(won.Release(ctx))
		}
		if want := slices.Sorted(slices.Values(ids)); !slices.Equal(order, want) {
			h.Errorf("ran in the order %v, want %v", order, want)
		}
		h.claim(s, other.ID) // other threads do not wait
	})
}

func TestARunningTaskHoldsItsThreadWithoutAClaim(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		late := h.submit(s, 5)
		c := h.claim(s, late)
		early := h.submit(s, 1) // its webhook was delivered late
		h.crash(c)              // or Redis lost the claim, and the owner is alive
		if _, err := h.ask(s, early); !errors.Is(err, ErrBusy) {
			h.Fatalf("claim = %v, want %v", err, ErrBusy)
		}
		if _, _, err := c.refresh(ctx); err != nil {
			h.Errorf("the owner did not get its claim back: %v", err)
		}
		h.crash(c)
		h.takeover(s, c)
		if _, err := s.Claim(ctx, late, 1, "w"); !errors.Is(err, ErrBusy) {
			h.Errorf("after the takeover the earlier task comes first, but: %v", err)
		}
		h.claim(s, early)
	})
}

func TestReturnKeepsThePlace(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		first, second := h.submit(s, 1), h.submit(s, 2)
		for n, row := range []struct {
			count bool
			want  int
		}{{false, 0}, {true, 1}, {true, 2}, {false, 2}} {
			h.ok(h.claim(s, first).Return(ctx, Wait{Counts: row.count}))
			if got := must(s.Get(ctx, first)); got.Attempt != row.want || got.State != Waiting || got.Delivery != n+1 {
				h.Errorf("return %d: %d attempts, %s, delivery %d; want %d, waiting, %d", n, got.Attempt, got.State,
					got.Delivery, row.want, n+1)
			}
		}
		c := h.claim(s, first)
		h.ok(c.Return(ctx, Wait{}))
		if _, _, err := c.refresh(ctx); !errors.Is(err, ErrStale) { // a renewal in progress
			h.Errorf("refresh after the return = %v, want %v", err, ErrStale)
		}
		at := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		h.ok(h.claim(s, first).Return(ctx, Wait{At: at}))
		var notDue *NotDue
		if _, err := s.Claim(ctx, first, 6, "w"); !errors.As(err, &notDue) || !notDue.At.Equal(at) {
			h.Errorf("claim = %v, want not due before %s", err, at)
		}
		if _, err := h.ask(s, second); !errors.Is(err, ErrBusy) {
			h.Errorf("the second overtook: %v", err)
		}
	})
}

func TestFenceGrowsOverAForgetfulRedis(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		var last int64
		for _, forget := range []func() error{
			func() error { return nil },
			func() error { return h.rdb.Del(ctx, "errand:fence").Err() },
			func() error { return h.rdb.Set(ctx, "errand:fence", 7, 0).Err() },
			// the clock went back an hour
			func() error { return h.rdb.Set(ctx, "errand:fence", last+3_600_000_000, 0).Err() },
			func() error { return nil },
		} {
			h.ok(forget())
			c := h.claim(s, id)
			if c.Fence() <= last {
				h.Errorf("fence %d after %d", c.Fence(), last)
			}
			last = c.Fence()
			h.ok(c.Return(ctx, Wait{}))
		}
	})
}

func TestRefreshPutsAVanishedClaimBack(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		next := h.submit(s, 2)
		key := "errand:claim:t"
		value := must(h.rdb.Get(ctx, key).Result())
		refreshed := func(what string) {
			h.Helper()
			if _, _, err := c.refresh(ctx); err != nil {
				h.Errorf("%s: %v", what, err)
			}
			if got := h.rdb.Get(ctx, key).Val(); got != value {
				h.Errorf("%s: claim %q, want %q", what, got, value)
			}
		}
		h.ok(h.rdb.PExpire(ctx, key, time.Second).Err())
		refreshed("alive")
		if left := h.rdb.PTTL(ctx, key).Val(); left <= time.Second {
			h.Errorf("a refreshed claim lives for %s", left)
		}
		h.crash(c)
		refreshed("vanished while running")
		h.ok(c.End(ctx, nil))
		h.crash(c)
		refreshed("vanished while posting")

		h.ok(c.Release(ctx))
		if _, _, err := c.refresh(ctx); !errors.Is(err, ErrStale) {
			h.Errorf("refresh after the release = %v, want %v", err, ErrStale)
		}
		h.claim(s, next)
	})
}

// TestThreadsNeverOverlap lets workers race for all tasks at once.
func TestThreadsNeverOverlap(t *testing.T) {
	onBoth(t, func(h *harness) {
		const tasks, threads, workers = 24, 3, 5
		ctx, s := h.Context(), h.store(Config{})
		for n := range tasks {
			rec := task(n)
			rec.Thread = string(rune('a' + n%threads))
			_, _, err := s.Submit(ctx, rec)
			h.ok(err)
		}
		var mu sync.Mutex
		holder := map[string]string{}
		order := map[string][]string{}
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for {
					live, err := s.Live(ctx)
					if err != nil || len(live) == 0 {
						return
					}
					for _, r := range live {
						c, err := h.ask(s, r.ID)
						if err != nil {
							continue
						}
						mu.Lock()
						if other := holder[r.Thread]; other != "" {
							h.Errorf("%s and %s run at once", other, r.ID)
						}
						holder[r.Thread] = r.ID
						order[r.Thread] = append(order[r.Thread], r.ID)
						mu.Unlock()
						if err := c.End(ctx, nil); err != nil {
							h.Error(err)
						}
						mu.Lock()
						holder[r.Thread] = ""
						mu.Unlock()
						if err := c.Release(ctx); err != nil {
							h.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		for thread, ids := range order {
			if len(ids) != tasks/threads || !slices.IsSorted(ids) {
				h.Errorf("thread %s ran %v", thread, ids)
			}
		}
		if len(order) != threads {
			h.Errorf("%d threads ran, want %d", len(order), threads)
		}
	})
}

// Only the delivery for which a task waits explains why, and only while the task waits.
func TestExplanationsOfOtherDeliveries(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		for i, e := range []struct {
			delivery int
			key      string
		}{
			{1, "of another delivery"},
			{0, "k"},
			{0, "k"}, // the same once more
		} {
			rec, _, err := s.Explain(ctx, id, e.delivery, e.key, 0)
			h.ok(err)
			if fresh := i == 1; fresh != (rec != nil) || fresh && (rec.ID != id || rec.State != Waiting) {
				h.Errorf("%d, %s: %+v", i, e.key, rec)
			}
		}
		h.claim(s, id)
		if rec, _, err := s.Explain(ctx, id, 0, "runs", 0); rec != nil || err != nil {
			h.Errorf("a task that runs is explained: %+v, %v", rec, err)
		}
	})
}
