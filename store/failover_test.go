package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// onReplica runs a test on a real Redis. The function that test gets makes the data what a replica has that lacks all
// later writes, as after a fail-over to it.
func onReplica(t *testing.T, test func(h *harness, behind func() (promote func()))) {
	t.Helper()
	t.Parallel()
	h := newHarness(t, redistest.Start(t), nil)
	test(h, func() func() {
		type value struct {
			dump string
			ttl  time.Duration
		}
		ctx, all := h.Context(), map[string]value{}
		for _, key := range must(h.rdb.Keys(ctx, "*").Result()) {
			all[key] = value{must(h.rdb.Dump(ctx, key).Result()), max(0, must(h.rdb.PTTL(ctx, key).Result()))}
		}
		return func() {
			h.ok(h.rdb.FlushAll(ctx).Err())
			for key, v := range all {
				h.ok(h.rdb.Restore(ctx, key, v.ttl, v.dump).Err())
			}
		}
	})
}

// A holder restores a claim that the new master has never seen, whether the task was claimed before or not.
func TestLostClaimIsRestored(t *testing.T) {
	onReplica(t, func(h *harness, behind func() func()) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		for range 2 {
			promote := behind()
			c := h.claim(s, id)
			promote()
			if _, _, err := c.refresh(ctx); err != nil || !c.Restored() {
				h.Fatalf("refresh: %v, restored %t", err, c.Restored())
			}
			if rec := must(s.Get(ctx, id)); rec.State != Running || rec.Fence != c.Fence() {
				h.Errorf("restored as %+v", rec)
			}
			h.ok(c.Return(ctx, Wait{}))
		}
	})
}

// A holder whose task was taken over by another one stays out, although the new master knows neither of its claims.
func TestLostClaimOfATaskThatWasClaimedAgain(t *testing.T) {
	onReplica(t, func(h *harness, behind func() func()) {
		s := h.store(Config{})
		promote := behind()
		id := h.submit(s, 1)
		old := h.claim(s, id)
		promote()
		h.submit(s, 1) // the service has redelivered it
		other := h.claim(s, id)
		if _, _, err := old.refresh(h.Context()); !errors.Is(err, ErrStale) {
			h.Errorf("refresh of the forgotten claim: %v", err)
		}
		if _, _, err := other.refresh(h.Context()); err != nil {
			h.Errorf("refresh: %v", err)
		}
	})
}

// No claim has the fence of a forgotten one, even if the clock of the new master is behind.
func TestFencesDiffer(t *testing.T) {
	onReplica(t, func(h *harness, behind func() func()) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		h.ok(h.rdb.Set(ctx, "errand:fence", time.Now().Add(time.Hour).UnixMicro(), 0).Err())
		promote := behind()
		seen := map[int64]bool{}
		for range 50 {
			seen[h.claim(s, id).Fence()] = true
			promote()
		}
		if len(seen) < 48 { // of 65,536 steps
			h.Errorf("%d fences for 50 claims", len(seen))
		}
		c := h.claim(s, id)
		promote()
		_, _, err := c.refresh(ctx)
		h.ok(err)
		if next := h.claim(s, h.submitTo(s, 2, "other")); next.Fence() <= c.Fence() {
			h.Errorf("fence %d follows the restored %d", next.Fence(), c.Fence())
		}
	})
}

// A restored claim keeps the cancellation that its task got meanwhile.
func TestRestoredClaimIsCancelled(t *testing.T) {
	onReplica(t, func(h *harness, behind func() func()) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		promote := behind()
		c := h.claim(s, id)
		promote()
		_, err := s.Cancel(ctx, id, "U1", "not needed")
		h.ok(err)
		_, _, err = c.refresh(ctx)
		h.ok(err)
		if by, cause, err := c.refresh(ctx); by != "U1" || cause != "not needed" || err != nil {
			h.Errorf("cancelled by %q because %q, %v", by, cause, err)
		}
	})
}

// A lost ending ends nothing: the task is requeued like that of a dead worker, and its ending is posted once again,
// which the marker in the thread prevents.
func TestLostEnding(t *testing.T) {
	onReplica(t, func(h *harness, behind func() func()) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		c := h.claim(s, id)
		promote := behind()
		h.ok(c.End(ctx, json.RawMessage(`1`)))
		promote()
		if err := c.Release(ctx); err != nil {
			h.Errorf("release: %v", err)
		}
		if err := c.End(ctx, json.RawMessage(`1`)); !errors.Is(err, ErrStale) {
			h.Errorf("end after the release: %v", err)
		}
		rec := must(s.Get(ctx, id))
		if _, err := s.Requeue(ctx, id, rec.Delivery, rec.Fence, true); err != nil {
			h.Errorf("requeue: %v", err)
		}
	})
}

// Steps that people are told about wait for replicas, if that is configured.
func TestReplicas(t *testing.T) {
	t.Parallel()
	h := newHarness(t, redistest.Start(t), nil)
	ctx, one := h.Context(), h.store(Config{Replicas: 1})
	if _, _, err := one.Submit(ctx, task(1)); !errors.Is(err, ErrNotReplicated) {
		h.Errorf("submit without a replica: %v", err)
	}
	replica := dial(t, redistest.Start(t))
	master := h.rdb.Options()
	host, port, _ := net.SplitHostPort(master.Addr)
	h.ok(replica.ConfigSet(ctx, "masterauth", master.Password).Err())
	h.ok(h.rdb.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err()) // it waits 5 s for further replicas
	h.ok(replica.ReplicaOf(ctx, host, port).Err())
	for { // it was stored the first time, and is confirmed as soon as the replica is there
		if _, created, err := one.Submit(ctx, task(1)); err == nil && !created {
			break
		} else if !errors.Is(err, ErrNotReplicated) {
			h.Fatalf("submit: created %t, %v", created, err)
		}
	}
	copied := h.store(Config{Redis: replica})
	if rec, err := copied.Get(ctx, task(1).ID); err != nil || rec.State != Waiting {
		h.Errorf("the replica has %+v, %v", rec, err)
	}
	c := h.claim(one, task(1).ID)
	h.ok(replica.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	if err := c.End(ctx, json.RawMessage(`1`)); !errors.Is(err, ErrNotReplicated) {
		h.Errorf("end without a replica: %v", err)
	}
	if err := one.Replicate(ctx); !errors.Is(err, ErrNotReplicated) {
		h.Errorf("writes of others without a replica: %v", err)
	}
	h.ok(replica.ReplicaOf(ctx, host, port).Err())
	await.Until(h, "the replica confirms", func() bool { return c.End(ctx, json.RawMessage(`1`)) == nil })
	if rec := must(copied.Get(ctx, task(1).ID)); rec.State != Ended {
		h.Errorf("the replica has it as %s", rec.State)
	}
	h.ok(h.rdb.Set(ctx, "errand:other", "written", 0).Err())
	h.ok(one.Replicate(ctx))
	if got := must(replica.Get(ctx, "errand:other").Result()); got != "written" {
		h.Errorf("the replica has %q", got)
	}
}

// After another process of Redis took over, or all data was lost, a task may have been answered if it was there before
// or if its event is that old: it may be delivered again. So its claim has Doubt and no run absorbs it. Later tasks are
// as always.
func TestDoubt(t *testing.T) {
	t.Parallel()
	h := newHarness(t, redistest.Start(t), nil)
	ctx, s := h.Context(), h.store(Config{})
	old := h.put(s, kin(1), kin(2), kin(3))
	first := h.claim(s, old[0])
	if first.Record().Doubt || h.take(first) != old[1] {
		h.Errorf("in doubt before: %+v", first.Record())
	}
	h.ok(h.rdb.HSet(ctx, "errand:epoch", "process", "another").Err()) // as that process left it
	h.nothing("in doubt", first)
	h.ok(first.End(ctx, json.RawMessage(`1`)))
	h.ok(first.Release(ctx))
	second := h.claim(s, old[1])
	if !second.Record().Doubt {
		h.Error("not in doubt")
	}
	h.ok(second.End(ctx, json.RawMessage(`1`)))
	h.ok(second.Release(ctx))
	h.ok(must(s.Claim(ctx, old[2], 0, "w")).End(ctx, json.RawMessage(`1`)))
	h.crash(second)
	if again := h.claim(s, h.put(s, kin(4))[0]); !again.Record().Doubt {
		h.Error("an event from before is not in doubt")
	} else {
		h.ok(again.End(ctx, json.RawMessage(`1`)))
		h.ok(again.Release(ctx))
	}
	later := func(n int) Record {
		rec := kin(n)
		rec.ID = fmt.Sprintf("%d-test-x", time.Now().Add(time.Duration(n)*time.Second).UnixMicro())
		return rec
	}
	last := h.claim(s, h.put(s, later(5), later(6))[0])
	if last.Record().Doubt || h.take(last) == "" {
		h.Errorf("a later task is in doubt: %+v", last.Record())
	}
}

// When Redis loses its data while it runs, the first step that finds it empty notes that, whichever it is: a task whose
// event is from before may have been answered, and one from after is as always.
func TestDoubtAfterALoss(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		data := "earlier data"
		for name, notice := range map[string]func(){
			"submit": func() {},
			"worker": func() { _, _, err := s.Doctor.Epoch(ctx, data); h.ok(err) },
			"start":  func() { _, _, err := s.Doctor.Epoch(ctx, ""); h.ok(err) },
		} {
			if c := h.claim(s, h.put(s, kin(1))[0]); c.Record().Doubt {
				h.Errorf("%s: in doubt before", name)
			}
			h.ok(h.rdb.FlushAll(ctx).Err())
			notice()
			recs := []Record{kin(1), kin(2)}
			for i := range recs {
				recs[i].Thread = fmt.Sprint(i)
			}
			later := kin(3)
			later.ID, later.Thread = fmt.Sprintf("%d-test-x", time.Now().Add(time.Hour).UnixMicro()), "later"
			for _, id := range h.put(s, append(recs, later)...) {
				if c := h.claim(s, id); c.Record().Doubt != (id != later.ID) {
					h.Errorf("%s: %s has doubt %t", name, id, c.Record().Doubt)
				}
			}
			h.empty()
		}
		id := h.put(s, kin(1))[0]
		h.ok(h.rdb.Del(ctx, "errand:epoch").Err()) // as if a front door of an earlier version had submitted it
		if c := h.claim(s, id); !c.Record().Doubt {
			h.Error("a claim does not notice that the epoch is missing")
		}
	})
}
