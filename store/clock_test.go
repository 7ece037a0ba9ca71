package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/redisclock"
	"github.com/redis/go-redis/v9"
)

// jumping is a real Redis whose clock jumps.
type jumping struct {
	*harness
	clock *redisclock.Clock
}

// overJumps runs a test for a jump forward and one back.
func overJumps(t *testing.T, test func(j jumping, jump time.Duration)) {
	t.Helper()
	t.Parallel()
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			t.Parallel()
			url, clock := redisclock.ForTest(t)
			test(jumping{newHarness(t, url, nil), clock}, jump)
		})
	}
}

// ahead sets Redis' clock to the true time plus this.
func (j jumping) ahead(d time.Duration) {
	j.Helper()
	j.ok(j.clock.Set(d))
}

// lives fails if a key lives for longer.
func (j jumping) lives(key string, most time.Duration) {
	j.Helper()
	if left := must(j.rdb.PTTL(j.Context(), key).Result()); left > most {
		j.Errorf("%s lives for %s, want at most %s", key, left, most)
	}
}

// busy fails if a task can be claimed.
func (j jumping) busy(s *Store, id string) {
	j.Helper()
	if _, err := j.ask(s, id); !errors.Is(err, ErrBusy) {
		j.Errorf("claim of %s: %v, want busy", id, err)
	}
}

// A live holder keeps its thread over a jump, and a later claim has a greater fence.
func TestClaimOverAJump(t *testing.T) {
	overJumps(t, func(j jumping, jump time.Duration) {
		s := j.store(Config{})
		first, second, third := j.claim(s, j.submit(s, 1)), j.submit(s, 2), j.submit(s, 3)
		j.ahead(jump)
		j.busy(s, second)
		j.ok(j.refresh(first))
		j.busy(s, second)
		j.lives("errand:claim:t", 15*time.Second)
		j.ok(first.End(j.Context(), nil))
		j.ok(first.Release(j.Context()))
		next := j.claim(s, second)
		j.ahead(0)
		j.ok(j.refresh(next))
		j.ok(next.Return(j.Context(), Wait{}))
		again := j.claim(s, second)
		j.busy(s, third)
		if next.Fence() <= first.Fence() || again.Fence() <= next.Fence() {
			j.Errorf("fences %d, %d, %d", first.Fence(), next.Fence(), again.Fence())
		}
	})
}

// After a jump back, what a dead process held is free as soon as without it.
func TestDeadHolderAfterAJump(t *testing.T) {
	overJumps(t, func(j jumping, jump time.Duration) {
		ctx, s := j.Context(), j.store(Config{})
		j.claim(s, j.submitTo(s, 1, "runs"))
		j.ok(j.claim(s, j.submitTo(s, 2, "ended")).End(ctx, nil))
		must(s.Threads.Lock(ctx, "locked", time.Minute))
		must(s.Leader("x", 5*time.Second).Lead(ctx))
		j.beat(s, Worker{ID: "dead"})
		j.ahead(jump)
		j.ok(s.BoundClaims(ctx, must(s.Running(ctx))))
		j.lives("errand:claim:runs", 15*time.Second)
		for n, thread := range map[int]string{3: "ended", 4: "locked"} {
			if _, err := s.Claim(ctx, j.submitTo(s, n, thread), 0, "w"); (jump < 0) != errors.Is(err, ErrBusy) {
				j.Errorf("claim in %s: %v", thread, err)
			}
		}
		j.lives("errand:claim:ended", 15*time.Second)
		j.lives("errand:claim:locked", time.Minute)
		if term := must(s.Leader("x", 5*time.Second).Lead(ctx)); (jump < 0) != (term == "") {
			j.Errorf("term %q of another leader", term)
		}
		j.lives("errand:leader:x", 5*time.Second)
		j.beat(s, Worker{ID: "lives", Taking: true})
		j.ahead(jump + 20*time.Second)
		if alive := must(s.Workers.Beat(ctx, Worker{ID: "lives", Taking: true})).Taking; alive != 1 ||
			len(must(s.Workers.List(ctx))) != 1 {
			j.Errorf("%d workers live, want 1", alive)
		}
	})
}

// How long a claim is missing is measured anew after a jump back. A jump forward ends the leader's term, in which alone
// it counts.
func TestSilentOverAJump(t *testing.T) {
	overJumps(t, func(j jumping, jump time.Duration) {
		ctx, s := j.Context(), j.store(Config{})
		c, leader := j.claim(s, j.submit(s, 1)), s.Leader("x", 5*time.Second)
		j.crash(c)
		run := LiveRecord{Record: c.Record()}
		for i, ahead := range []time.Duration{0, jump, jump + 3*time.Second} {
			j.ahead(ahead)
			silent := must(s.Silent(ctx, must(leader.Lead(ctx)), run))[c.ID()]
			if silent < 0 || silent > 5*time.Second || i == 2 && jump < 0 && silent < 2*time.Second {
				j.Errorf("%s ahead: silent for %s", ahead, silent)
			}
		}
	})
}

// The time of a retry and of a credential's limit is by the worker's clock, whatever Redis' clock says. Turns and
// places are not held up for longer than they can be without a jump.
func TestWaitingOverAJump(t *testing.T) {
	overJumps(t, func(j jumping, jump time.Duration) {
		ctx, s, due := j.Context(), j.store(Config{}), time.Now().Add(30*time.Minute)
		later, now := task(1), task(2)
		later.At, later.Thread, now.At = due, "later", time.Now().Add(-time.Minute)
		j.put(s, later, now)
		j.ok(s.Credentials.Hold(ctx, "held", due, time.Second, "limit"))
		j.ok(s.Credentials.Hold(ctx, "free", time.Now().Add(-time.Minute), time.Second, "limit"))
		j.ok(s.Credentials.Admit(ctx, "free"))
		must(s.Memos.Allow(ctx, "x", time.Minute, 1))
		j.ahead(jump)
		var notDue *NotDue
		if _, err := s.Claim(ctx, later.ID, 0, "w"); !errors.As(err, &notDue) {
			j.Errorf("claim of a task that is not due: %v", err)
		}
		j.claim(s, now.ID)
		var held *Held
		if err := s.Credentials.Admit(ctx, "held"); jump < 0 &&
			(!errors.As(err, &held) || time.Until(held.At) > 31*time.Minute) {
			j.Errorf("admit: %v", err)
		}
		j.ok(s.Credentials.Admit(ctx, "free"))
		if err := s.Credentials.Admit(ctx, "free"); jump < 0 &&
			(!errors.As(err, &held) || time.Until(held.At).Abs() > 5*time.Second) {
			j.Errorf("the next turn: %v", err)
		}
		if wait := must(s.Memos.Allow(ctx, "x", time.Minute, 1)); wait > 0 {
			j.Errorf("a request after the jump is refused for %s", wait)
		}
	})
}

// The first in line for a place loses its precedence in time although the clock went back meanwhile.
func TestLineOverAJump(t *testing.T) {
	overJumps(t, func(j jumping, jump time.Duration) {
		ctx, s := j.Context(), j.store(Config{})
		claim := func(id string) (*Claim, error) { return j.ask(s, id, Cap{"user:", 1}) }
		j.ok(j.rdb.ZAdd(ctx, "errand:pool:default", redis.Z{Member: "w"}).Err())
		var ids []string
		for n, thread := range []string{"a", "b", "c"} {
			rec := task(n + 1)
			rec.Thread, rec.Scopes = thread, []string{"user:u"}
			ids = append(ids, j.put(s, rec)...)
		}
		c := must(claim(ids[0]))
		for _, id := range ids[1:] {
			_, err := claim(id)
			j.full("while it is taken", err)
		}
		j.ok(c.Return(ctx, Wait{At: time.Now().Add(time.Minute)}))
		_, err := claim(ids[2])
		j.full("behind the first", err)
		j.ahead(jump)
		_, _ = claim(ids[2])
		j.ahead(jump + 6*time.Second)
		if _, err := claim(ids[2]); err != nil && !errors.Is(err, ErrRunning) {
			j.Errorf("after the first did not come: %v", err)
		}
	})
}

// full expects a refusal for a cap.
func (j jumping) full(why string, err error) {
	j.Helper()
	if _, ok := errors.AsType[*Full](err); !ok {
		j.Errorf("%s: %v, want full", why, err)
	}
}

// A message in the hands of a poster is not given to another one by a jump, and every message is due a minute after it.
func TestOutboxOverAJump(t *testing.T) {
	overJumps(t, func(j jumping, jump time.Duration) {
		ctx, s := j.Context(), j.store(Config{})
		ids := []string{j.submitTo(s, 1, "a"), j.submitTo(s, 2, "b")}
		for _, id := range ids {
			must(s.EndWaiting(ctx, id, nil))
		}
		leased, _, err := s.Outbox.Take(ctx, ids[0])
		j.ok(err)
		postponed, _, err := s.Outbox.Take(ctx, ids[1])
		j.ok(err)
		j.ok(s.Outbox.Postpone(ctx, postponed, Delay{At: time.Now().Add(10 * time.Minute)}))
		j.ahead(jump)
		for _, id := range []string{"", ids[0]} {
			if p, ok, err := s.Outbox.Take(ctx, id); ok || err != nil {
				j.Errorf("took %+v, %v", p, err)
			}
		}
		j.ahead(jump + 50*time.Second)
		if _, ok, _ := s.Outbox.Take(ctx, ""); ok {
			j.Error("a lease ended early")
		}
		j.ahead(jump + 61*time.Second)
		for range ids {
			if _, ok, err := s.Outbox.Take(ctx, ""); !ok || err != nil {
				j.Errorf("nothing is due after a minute: %v", err)
			}
		}
		if err := s.Outbox.MarkPosted(ctx, leased); !errors.Is(err, ErrStale) {
			j.Errorf("the earlier lease: %v", err)
		}
	})
}

// Tasks from before a fail-over are in doubt although the new master's clock is behind.
func TestDoubtOverAJump(t *testing.T) {
	overJumps(t, func(j jumping, jump time.Duration) {
		ctx, s := j.Context(), j.store(Config{})
		at := func(d time.Duration) Record {
			rec := task(0)
			rec.ID = fmt.Sprintf("%d-test-x", time.Now().Add(d).UnixMicro())
			return rec
		}
		j.ok(j.claim(s, j.submitTo(s, 1, "other")).End(ctx, nil)) // notes the process
		old := at(0)
		j.put(s, old)
		j.ok(j.rdb.HSet(ctx, "errand:epoch", "process", "another").Err())
		j.ahead(jump)
		c := j.claim(s, old.ID)
		if !c.Record().Doubt {
			j.Error("not in doubt")
		}
		j.ok(c.End(ctx, nil))
		j.ok(c.Release(ctx))
		if jump > 0 {
			return // the clock says that the fail-over was later
		}
		if again := j.claim(s, j.put(s, at(time.Second))[0]); again.Record().Doubt {
			j.Error("a later task is in doubt")
		}
	})
}

// The messages of a run are in the order in which it took them.
func TestAbsorbedOverAJump(t *testing.T) {
	overJumps(t, func(j jumping, jump time.Duration) {
		s := j.store(Config{})
		ids := j.put(s, kin(1), kin(2), kin(3))
		c := j.claim(s, ids[0])
		j.take(c)
		j.ahead(jump)
		j.take(c)
		got := must(s.Absorbed(j.Context(), c.ID()))
		if len(got) != 2 || got[0].ID != ids[1] || got[1].ID != ids[2] {
			j.Errorf("absorbed %v", got)
		}
	})
}
