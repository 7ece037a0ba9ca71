package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kin is the n-th task of thread "t", with a merge key that all kin share.
func kin(n int) Record {
	rec := task(n)
	rec.MergeKey = "k"
	return rec
}

// put submits tasks and returns the IDs.
func (h *harness) put(s *Store, recs ...Record) []string {
	h.Helper()
	var ids []string
	for _, rec := range recs {
		_, _, err := s.Submit(h.Context(), rec)
		h.ok(err)
		ids = append(ids, rec.ID)
	}
	return ids
}

// take takes the next task, which must exist.
func (h *harness) take(c *Claim) string {
	h.Helper()
	rec, ok, err := c.Take(h.Context(), false, json.RawMessage(`"absorbed"`))
	if err != nil || !ok {
		h.Fatalf("take: %t, %v", ok, err)
	}
	return rec.ID
}

// absorbing returns a claim of the first of two tasks, which has taken the second.
func (h *harness) absorbing(cfg Config) (s *Store, c *Claim, ids []string) {
	h.Helper()
	s = h.store(cfg)
	ids = h.put(s, kin(1), kin(2))
	c = h.claim(s, ids[0])
	h.take(c)
	return s, c, ids
}

// nothing checks that there is nothing to take.
func (h *harness) nothing(why string, c *Claim) {
	h.Helper()
	if rec, ok, err := c.Take(h.Context(), false, nil); ok || err != nil {
		h.Errorf("%s: took %s, %v", why, rec.ID, err)
	}
}

// states lists the states of tasks, with the run that absorbed them in brackets.
func (h *harness) states(s *Store, ids ...string) []string {
	h.Helper()
	var list []string
	for _, id := range ids {
		rec := must(s.Get(h.Context(), id))
		text := string(rec.State)
		if rec.Into != "" {
			text += " (" + rec.Into[14:16] + ")"
		}
		list = append(list, text)
	}
	return list
}

func (h *harness) same(what string, got, want any) {
	h.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTake(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		ids := h.put(s, kin(1), kin(2), kin(3))
		c := h.claim(s, ids[0])
		rec, ok, err := c.Take(ctx, false, json.RawMessage(`"absorbed"`))
		if err != nil || !ok || rec.ID != ids[1] || rec.State != Absorbed || rec.Into != ids[0] ||
			string(rec.Task) != `{"n":1}` {
			h.Fatalf("took %+v, %t, %v", rec, ok, err)
		}
		if e := must(s.Events.Read(ctx, ids[1], "", 0)); len(e) != 1 || string(e[0].Data) != `"absorbed"` {
			h.Errorf("events: %v", e)
		}
		if _, err := s.Claim(ctx, ids[1], 0, "w"); !errors.Is(err, ErrRunning) {
			h.Errorf("claim of an absorbed task = %v", err)
		}
		if places := must(s.Places(ctx, must(s.Records(ctx, ids[1:2])))); places[0] != 0 {
			h.Errorf("place of an absorbed task: %d", places[0])
		}
		if _, err := s.Requeue(ctx, ids[1], 0, 0, false); !errors.Is(err, ErrStale) {
			h.Errorf("requeue of an absorbed task = %v", err)
		}
		if done, err := s.EndWaiting(ctx, ids[1], nil); done || err != nil {
			h.Errorf("end of an absorbed task: %t, %v", done, err)
		}
		if _, created, err := s.Submit(ctx, kin(2)); created || err != nil {
			h.Errorf("submitted again: %t, %v", created, err)
		}
		h.same("second", h.take(c), ids[2])
		h.nothing("none left", c)
		if live := must(s.Live(ctx)); len(live) != 1 {
			h.Errorf("live: %v", live)
		}
		list := must(s.List(ctx, ListQuery{State: Absorbed})).Records
		if len(list) != 2 || list[0].ID != ids[2] {
			h.Errorf("absorbed: %v", list)
		}
		var order []string
		for _, rec := range must(s.Absorbed(ctx, ids[0])) {
			order = append(order, rec.ID)
		}
		h.same("order", order, ids[1:])
	})
}

// Tasks with another merge key, not due, cancelled or started before should not be taken; nor any task behind them.
func TestTakeKeepsTheOrder(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for name, hinder := range map[string]func(rec *Record) (after func(*Claim)){
			"other kin": func(rec *Record) func(*Claim) { rec.MergeKey = "other"; return nil },
			"no kin":    func(rec *Record) func(*Claim) { rec.MergeKey = ""; return nil },
			"not due":   func(rec *Record) func(*Claim) { rec.At = time.Now().Add(time.Hour); return nil },
			"cancelled": func(rec *Record) func(*Claim) {
				return func(*Claim) { must(s.Cancel(ctx, rec.ID, "ann", "user")) }
			},
			"begun": func(rec *Record) func(*Claim) {
				return func(*Claim) { h.ok(h.rdb.HSet(ctx, "errand:task:"+rec.ID, "fence", "7").Err()) }
			},
		} {
			h.empty()
			second := kin(2)
			after := hinder(&second)
			ids := h.put(s, kin(1), second, kin(3))
			c := h.claim(s, ids[0])
			if after != nil {
				after(c)
			}
			h.nothing(name, c)
			h.same(name, h.states(s, ids...), []string{"running", "waiting", "waiting"})
		}
		h.empty()
		ids := h.put(s, task(1), task(2))
		h.nothing("no merge key", h.claim(s, ids[0]))
	})
}

// The last take should return what is there or close the mailbox; a later submit should report that the task waits.
func TestTakeEndsWithTheMailbox(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		ids := h.put(s, kin(1), kin(2))
		c := h.claim(s, ids[0])
		if rec, ok, err := c.Take(ctx, true, nil); !ok || err != nil || rec.ID != ids[1] {
			h.Fatalf("last look took %s, %t, %v", rec.ID, ok, err)
		}
		rec, _, err := s.Submit(ctx, kin(3))
		if h.ok(err); !rec.Joins || rec.Before != 1 {
			h.Errorf("open: %d before, joins %t", rec.Before, rec.Joins)
		}
		h.take(c)
		if _, ok, err := c.Take(ctx, true, nil); ok || err != nil {
			h.Errorf("last look: %t, %v", ok, err)
		}
		rec, _, err = s.Submit(ctx, kin(4))
		if h.ok(err); rec.Joins || rec.Before != 1 {
			h.Errorf("closed: %d before, joins %t", rec.Before, rec.Joins)
		}
		h.nothing("closed", c)
		// Another claim opens it again.
		h.ok(c.Return(ctx, Wait{}))
		c = h.claim(s, ids[0])
		h.same("after another claim", h.take(c), ids[1])
	})
}

func TestSubmitTellsWhoWaits(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		other := kin(3)
		other.MergeKey = "other"
		for i, row := range []struct {
			rec    Record
			before int
			joins  bool
		}{{kin(1), 0, false}, {kin(2), 1, true}, {other, 2, false}, {kin(4), 3, false}, {task(5), 4, false}} {
			rec, _, err := s.Submit(ctx, row.rec)
			if h.ok(err); rec.Before != row.before || rec.Joins != row.joins {
				h.Errorf("%d: %d before, joins %t", i, rec.Before, rec.Joins)
			}
		}
	})
}

// Tasks behind a postponed one should not be absorbed for a while, and should show that they wait.
func TestSubmitBehindAParkedTask(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		ids := h.put(s, kin(1))
		h.ok(h.claim(s, ids[0]).Return(ctx, Wait{At: time.Now().Add(time.Hour)}))
		rec, _, err := s.Submit(ctx, kin(2))
		if h.ok(err); rec.Before != 1 || rec.Joins {
			h.Errorf("%d before, joins %t", rec.Before, rec.Joins)
		}
	})
}

// A command that is sent again after a lost reply takes nothing more.
func TestTakeIsIdempotent(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		ids := h.put(s, kin(1), kin(2), kin(3))
		c := h.claim(s, ids[0])
		for range 3 {
			c.nonce = "LOST"
			h.same("taken", h.take(c), ids[1])
		}
		h.same("next", h.take(c), ids[2])
		for range 2 {
			h.ok(c.GiveBack(ctx, false, ids[2]))
			h.same("states", h.states(s, ids...), []string{"running", "absorbed (01)", "waiting"})
		}
		for range 2 {
			h.ok(c.EndWith(ctx, json.RawMessage(`"done"`), Covered{IDs: ids[1:], Ending: json.RawMessage(`"with"`)}))
			h.same("states", h.states(s, ids...), []string{"ended", "ended (01)", "waiting"})
		}
	})
}

// However a run ends, its absorbed tasks end with it or wait again.
func TestAbsorbedStayOrReturn(t *testing.T) {
	const kept, lost = "absorbed (01)", "waiting"
	save := func(h *harness, c *Claim, holds ...string) {
		h.ok(c.SaveCheckpoint(h.Context(), Checkpoint{Session: Session{ID: "s"}, Holds: holds}))
	}
	ways := map[string]struct {
		do   func(h *harness, s *Store, c *Claim, ids []string)
		want []string
	}{
		"end": {
			func(h *harness, _ *Store, c *Claim, _ []string) { h.ok(c.End(h.Context(), nil)) },
			[]string{"ended", lost, lost},
		},
		"end with": {func(h *harness, _ *Store, c *Claim, ids []string) {
			h.ok(c.EndWith(h.Context(), nil, Covered{IDs: ids[1:2]}))
		}, []string{"ended", "ended (01)", lost}},
		"return": {
			func(h *harness, _ *Store, c *Claim, _ []string) { h.ok(c.Return(h.Context(), Wait{})) },
			[]string{"waiting", lost, lost},
		},
		"return with a checkpoint": {func(h *harness, _ *Store, c *Claim, ids []string) {
			save(h, c, ids[1])
			h.ok(c.Return(h.Context(), Wait{}))
		}, []string{"waiting", kept, lost}},
		"crash": {
			func(h *harness, s *Store, c *Claim, _ []string) { h.crash(c); h.takeover(s, c) },
			[]string{"waiting", lost, lost},
		},
		"crash with a checkpoint": {func(h *harness, s *Store, c *Claim, ids []string) {
			save(h, c, ids...)
			h.crash(c)
			h.takeover(s, c)
		}, []string{"waiting", kept, kept}},
		"crash and end": {func(h *harness, s *Store, c *Claim, ids []string) {
			save(h, c, ids[1])
			h.crash(c)
			h.takeover(s, c)
			must(s.EndWaiting(h.Context(), c.ID(), json.RawMessage(`"lost"`)))
		}, []string{"ended", "ended (01)", lost}},
		"given back": {func(h *harness, _ *Store, c *Claim, ids []string) {
			h.ok(c.GiveBack(h.Context(), true, ids[2]))
			h.nothing("closed", c)
		}, []string{"running", kept, lost}},
		"vanished": {func(h *harness, _ *Store, c *Claim, ids []string) {
			h.rdb.Del(h.Context(), "errand:task:"+ids[2])
			h.ok(c.End(h.Context(), nil))
			if n := h.rdb.Exists(h.Context(), "errand:task:"+ids[2]).Val(); n != 0 {
				h.Error("part of a removed record is back")
			}
			h.put(h.store(Config{}), kin(3))
		}, []string{"ended", lost, lost}},
	}
	onBoth(t, func(h *harness) {
		for name, way := range ways {
			h.empty()
			s := h.store(Config{})
			ids := h.put(s, kin(1), kin(2), kin(3))
			c := h.claim(s, ids[0])
			h.take(c)
			h.take(c)
			way.do(h, s, c, ids)
			h.same(name, h.states(s, ids...), way.want)
			// The thread is in its old order.
			var waits []string
			for i, state := range way.want {
				if state == "waiting" || state == "running" {
					waits = append(waits, ids[i])
				}
			}
			h.same(name+": waiting", h.rdb.ZRange(h.Context(), "errand:waiting:t", 0, -1).Val(),
				append([]string{}, waits...))
		}
	})
}

// Steps on other tasks do not recreate part of a record that was removed by hand.
func TestNoStumps(t *testing.T) {
	ways := map[string]struct {
		gone   int
		parked bool
		do     func(h *harness, s *Store, c *Claim, ids []string) error
	}{
		"end": {1, false, func(h *harness, _ *Store, c *Claim, ids []string) error {
			return c.EndWith(h.Context(), nil, Covered{IDs: ids[1:]})
		}},
		"end waiting": {1, true, func(h *harness, s *Store, _ *Claim, ids []string) error {
			_, err := s.EndWaiting(h.Context(), ids[0], nil)
			return err
		}},
		"cancel": {0, false, func(h *harness, s *Store, _ *Claim, ids []string) error {
			_, err := s.Cancel(h.Context(), ids[1], "ann", "user")
			return err
		}},
	}
	onBoth(t, func(h *harness) {
		for name, way := range ways {
			h.empty()
			s, c, ids := h.absorbing(Config{})
			h.ok(c.SaveCheckpoint(h.Context(), Checkpoint{Holds: ids[1:]}))
			if way.parked {
				h.ok(c.Return(h.Context(), Wait{}))
			}
			key := "errand:task:" + ids[way.gone]
			h.rdb.Del(h.Context(), key)
			h.ok(way.do(h, s, c, ids))
			if got := h.rdb.HGetAll(h.Context(), key).Val(); len(got) > 0 {
				h.Errorf("%s: %v", name, got)
			}
		}
	})
}

// An absorbed task should have the ending of its run, not be posted separately, expire, and be retriable separately.
func TestCoveredTask(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx := h.Context()
		s, c, ids := h.absorbing(Config{})
		h.ok(c.EndWith(ctx, json.RawMessage(`"all"`), Covered{IDs: ids[1:], Ending: json.RawMessage(`"with"`)}))
		rec := must(s.Get(ctx, ids[1]))
		if string(rec.Ending) != `"with"` || rec.Outbox != -1 || rec.Ended.IsZero() || rec.Into != ids[0] {
			h.Errorf("%+v", rec)
		}
		if _, ok, err := s.Outbox.Take(ctx, ids[1]); ok || err != nil {
			h.Errorf("to be posted: %t, %v", ok, err)
		}
		if events := must(s.Events.Read(ctx, ids[1], "", 0)); len(events) != 2 || !events[1].End {
			h.Errorf("events: %v", events)
		}
		if live := h.rdb.ZRange(ctx, "errand:live", 0, -1).Val(); len(live) != 0 {
			h.Errorf("live: %v", live)
		}
		h.ok(c.Release(ctx))
		rec = must(s.Retry(ctx, ids[1], nil))
		if rec.State != Waiting || rec.Into != "" || rec.Outbox != 0 {
			h.Errorf("tried again: %+v", rec)
		}
		h.ok(h.claim(s, ids[1]).End(ctx, nil))
		if _, ok, err := s.Outbox.Take(ctx, ids[1]); !ok || err != nil {
			h.Errorf("its own message: %t, %v", ok, err)
		}
	})
}

// A retry would drop the final message, which is the only answer to the absorbed tasks.
func TestRetryAfterTheCommonMessage(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx := h.Context()
		s, c, ids := h.absorbing(Config{})
		h.ok(c.EndWith(ctx, nil, Covered{IDs: ids[1:]}))
		h.ok(c.Release(ctx))
		if _, err := s.Retry(ctx, ids[0], nil); !errors.Is(err, ErrUnposted) {
			h.Errorf("retry = %v, want %v", err, ErrUnposted)
		}
		post, ok, err := s.Outbox.Take(ctx, ids[0])
		if err != nil || !ok {
			h.Fatal("it is no longer to be posted", err)
		}
		h.ok(s.Outbox.MarkPosted(ctx, post))
		must(s.Retry(ctx, ids[0], nil))
		h.ok(h.claim(s, ids[0]).End(ctx, nil))
		must(s.Retry(ctx, ids[0], nil)) // now it covers nothing
	})
}

func TestCoveredTaskExpires(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx := h.Context()
		_, c, ids := h.absorbing(Config{Retention: time.Hour})
		h.ok(c.EndWith(ctx, nil, Covered{IDs: ids[1:]}))
		if n := h.rdb.Exists(ctx, "errand:absorbed:"+ids[0]).Val(); n != 0 {
			h.Error("the list of absorbed tasks outlives its run")
		}
		h.lapse("errand:events:"+ids[1], time.Hour)
		h.rdb.Del(ctx, "errand:task:"+ids[1])
	})
}

// Cancelling an absorbed task should stop its run; a task that the agent has not read should be cancelled, too.
func TestCancelOfAnAbsorbedTask(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx := h.Context()
		s, c, ids := h.absorbing(Config{})
		rec := must(s.Cancel(ctx, ids[1], "ann", "user"))
		if rec.ID != ids[0] || rec.State != Running || rec.CancelBy != "ann" {
			h.Errorf("the run to stop: %+v", rec)
		}
		if by, cause, err := c.refresh(ctx); by != "ann" || cause != "user" || err != nil {
			h.Errorf("the holder gets %s, %s, %v", by, cause, err)
		}
		h.ok(c.End(ctx, nil))
		if rec := must(s.Get(ctx, ids[1])); rec.State != Waiting || rec.CancelBy != "ann" {
			h.Errorf("%+v", rec)
		}
	})
}

// The holder looks when a task is submitted to its thread, and by itself if a hint was lost.
func TestMail(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{Refresh: time.Hour, ClaimTTL: 2 * time.Hour})
		ids := h.put(s, kin(1))
		c := h.claim(s, ids[0])
		looks := make(signal[int], 100)
		ctx, stop := context.WithCancel(h.Context())
		ended := make(chan struct{})
		n := 0
		go func() {
			defer close(ended)
			c.Mail(ctx, func() { n++; looks.fire(n) })
		}()
		looks.wait(h) // at once
		looks.wait(h) // subscribed
		other := kin(2)
		other.Thread = "u"
		h.put(s, other, kin(3))
		looks.wait(h)
		stop()
		<-ended
		if n != 3 {
			h.Errorf("looked %d times", n)
		}
	})
}

// With concurrent submits until the mailbox closes, each task is taken once, in order, or waits.
func TestNothingIsLostBetweenTwoTakes(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		host := h.put(s, kin(0))[0]
		c := h.claim(s, host)
		const n = 50
		submitted := make(chan struct{})
		go func() {
			defer close(submitted)
			for i := range n {
				_, _, _ = s.Submit(ctx, kin(i+1))
			}
		}()
		var taken []string
		for last := false; ; {
			rec, ok, err := c.Take(ctx, last, nil)
			h.ok(err)
			if ok {
				taken = append(taken, rec.ID)
			} else if last {
				break
			}
			last = len(taken) > n/2
		}
		<-submitted
		waiting := h.rdb.ZRange(ctx, "errand:waiting:t", 1, -1).Val() // behind the running one
		var want []string
		for i := range n {
			want = append(want, fmt.Sprintf("17000000000%05d-test-x", i+1))
		}
		h.same("taken and waiting", append(taken, waiting...), want)
	})
}

// A task that was absorbed by a run whose worker died goes into no other run, not even that of a task which nothing
// is known against.
func TestSuspectIsNotAbsorbed(t *testing.T) {
	onBoth(t, func(h *harness) {
		s, c, ids := h.absorbing(Config{})
		h.crash(c)
		h.takeover(s, c)
		late := h.put(s, kin(0))[0] // it precedes them
		c = h.claim(s, late)
		for _, id := range ids {
			h.nothing("a suspect", c)
			must(s.EndWaiting(h.Context(), id, nil))
		}
		if next := h.put(s, kin(3))[0]; h.take(c) != next {
			h.Error("a task that is no suspect was not taken")
		}
	})
}

// Absorbed tasks should be suspects like their run when its worker dies.
func TestCrashCountsForTheAbsorbed(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		ids := h.put(s, kin(0), kin(1), kin(2))
		c := h.claim(s, ids[0])
		taken := h.take(c)
		h.crash(c)
		h.takeover(s, c)
		for id, want := range map[string]int{ids[0]: 1, taken: 1, ids[2]: 0} {
			if rec := must(s.Get(ctx, id)); rec.Crashes != want || rec.Crashed.IsZero() != (want == 0) ||
				rec.State != Waiting {
				h.Errorf("%s has %d crashes, want %d: %+v", id, rec.Crashes, want, rec)
			}
			if rec := must(s.Get(ctx, id)); rec.Delivery != want { // the dead worker may have had its delivery, too
				h.Errorf("%s has delivery %d, want %d", id, rec.Delivery, want)
			}
		}
	})
}
