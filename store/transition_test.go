package store

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRequeue(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		waiting := func(string) {}
		running := func(id string) { h.claim(s, id) }
		dead := func(id string) { h.crash(h.claim(s, id)) }
		rows := []struct {
			name     string
			prepare  func(id string)
			delivery int
			fence    int64 // added to the record's
			crashed  bool
			want     error
		}{
			{"delivery lost", waiting, 0, 0, false, nil},
			{"delivery of a crash lost", waiting, 0, 0, true, nil},
			{"worker dead", dead, 0, 0, true, nil},
			{"worker gone in order", dead, 0, 0, false, nil},
			{"worker alive", running, 0, 0, true, ErrStale},
			{"seen before another requeue", waiting, -1, 0, false, ErrStale},
			{"seen before another claim", dead, 0, -1, true, ErrStale},
			{"ended", func(id string) { must(s.EndWaiting(ctx, id, nil)) }, 0, 0, false, ErrStale},
			{"not found", func(id string) { h.rdb.Del(ctx, "errand:task:"+id) }, 0, 0, false, ErrNotFound},
		}
		for n, row := range rows {
			rec := task(n)
			rec.Thread = row.name
			_, _, err := s.Submit(ctx, rec)
			h.ok(err)
			row.prepare(rec.ID)
			rec, _ = s.Get(ctx, rec.ID)
			before := h.dump()
			now, err := s.Requeue(ctx, task(n).ID, rec.Delivery+row.delivery, rec.Fence+row.fence, row.crashed)
			if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
				h.Errorf("%s: requeue = %v, want %v", row.name, err, row.want)
				continue
			}
			if row.want != nil {
				if diff := cmp.Diff(before, h.dump()); diff != "" {
					h.Errorf("%s: a refusal changed something:\n%s", row.name, diff)
				}
				continue
			}
			want := rec
			want.State, want.Delivery = Waiting, 1
			if row.crashed {
				want.Crashes++
			}
			got := must(s.Get(ctx, rec.ID))
			if row.crashed == got.Crashed.IsZero() {
				h.Errorf("%s: crashed at %s", row.name, got.Crashed)
			}
			if diff := cmp.Diff(got, now); diff != "" {
				h.Errorf("%s: requeue returned another record:\n%s", row.name, diff)
			}
			got.Crashed = time.Time{}
			if rec.State == Running {
				if len(got.Runs) != 1 || got.Runs[0].Worker != "w" || got.Runs[0].Ended.IsZero() ||
					got.Runs[0].Why != "its worker died" {
					h.Errorf("%s: runs %+v", row.name, got.Runs)
				}
				got.Runs = want.Runs
			}
			if diff := cmp.Diff(want, got); diff != "" {
				h.Errorf("%s:\n%s", row.name, diff)
			}
			if c := h.claim(s, rec.ID); c.Fence() <= rec.Fence {
				h.Errorf("%s: fence %d after %d", row.name, c.Fence(), rec.Fence)
			}
		}
	})
}

func TestEndGivesOneEnding(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		ended := func(id, ending string) {
			h.Helper()
			got := must(s.Get(ctx, id))
			if got.State != Ended || string(got.Ending) != ending || got.Ended.IsZero() || got.Outbox != 0 {
				h.Errorf("%s is %s with %s since %s, outbox %d", id, got.State, got.Ending, got.Ended, got.Outbox)
			}
			if events := must(s.Events.Read(ctx, id, "", 0)); len(events) != 1 || !events[0].End {
				h.Errorf("events %v, want only the end mark", events)
			}
		}
		first, second := h.submit(s, 1), h.submit(s, 2)
		c := h.claim(s, first)
		if done, err := s.EndWaiting(ctx, first, json.RawMessage(`"withdrawn"`)); done || err != nil {
			h.Errorf("end of a running task as if it waited: %t, %v", done, err)
		}
		h.ok(c.End(ctx, json.RawMessage(`"done"`)))
		ended(first, `"done"`)

		if done, err := s.EndWaiting(ctx, second, json.RawMessage(`"withdrawn"`)); !done || err != nil {
			h.Errorf("end of a waiting task: %t, %v", done, err)
		}
		for _, id := range []string{first, second} {
			if done, err := s.EndWaiting(ctx, id, json.RawMessage(`"again"`)); done || err != nil {
				h.Errorf("a second end: %t, %v", done, err)
			}
		}
		ended(second, `"withdrawn"`)
		if live := must(s.Live(ctx)); len(live) != 0 {
			h.Errorf("live: %v", live)
		}
		if _, err := s.EndWaiting(ctx, "1700000000000009-none", nil); !errors.Is(err, ErrNotFound) {
			h.Errorf("end = %v, want %v", err, ErrNotFound)
		}
		large := make(json.RawMessage, 1<<20+1)
		if err := c.End(ctx, large); !errors.Is(err, ErrTooLarge) {
			h.Errorf("a large ending = %v, want %v", err, ErrTooLarge)
		}
		if _, err := s.EndWaiting(ctx, second, large); !errors.Is(err, ErrTooLarge) {
			h.Errorf("a large ending = %v, want %v", err, ErrTooLarge)
		}
	})
}

func TestCancelFirstWins(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		hints := h.rdb.Subscribe(ctx, "errand:cancel")
		defer hints.Close()
		must(hints.Receive(ctx)) // subscribed

		waiting, running := h.submit(s, 2), h.submit(s, 1)
		h.claim(s, running)
		for _, id := range []string{waiting, running} {
			for n, by := range []string{"U1", "U2"} {
				got, err := s.Cancel(ctx, id, by, "cause of "+by)
				h.ok(err)
				if got.CancelBy != "U1" || got.CancelCause != "cause of U1" {
					h.Errorf("cancel %d of %s: by %q, cause %q", n, id, got.CancelBy, got.CancelCause)
				}
				if diff := cmp.Diff(must(s.Get(ctx, id)), got); diff != "" {
					h.Error(diff)
				}
				if m := must(hints.ReceiveMessage(ctx)); m.Payload != id {
					h.Errorf("hint %q, want %q", m.Payload, id)
				}
			}
		}

		must(s.EndWaiting(ctx, waiting, nil))
		must(s.Retry(ctx, waiting, nil))
		must(s.EndWaiting(ctx, waiting, nil))
		before := h.dump()
		got, err := s.Cancel(ctx, waiting, "U3", "late")
		if err != nil || got.State != Ended || got.CancelCause != "" {
			h.Errorf("cancel of an ended task: %s, cause %q, %v", got.State, got.CancelCause, err)
		}
		if diff := cmp.Diff(before, h.dump()); diff != "" {
			h.Errorf("it changed something:\n%s", diff)
		}
		if _, err := s.Cancel(ctx, "1700000000000009-none", "U1", "user"); !errors.Is(err, ErrNotFound) {
			h.Errorf("cancel = %v, want %v", err, ErrNotFound)
		}
		if _, err := s.Cancel(ctx, running, "U1", ""); err == nil {
			h.Error("a cancel without cause was accepted")
		}
	})
}

func TestRetryStartsAfresh(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		if _, err := s.Retry(ctx, id, nil); !errors.Is(err, ErrNotEnded) {
			h.Errorf("retry of a waiting task = %v, want %v", err, ErrNotEnded)
		}
		c := h.claim(s, id)
		h.crash(c)
		h.takeover(s, c)
		must(s.Cancel(ctx, id, "U1", "user"))
		c = h.claim(s, id)
		if _, err := s.Retry(ctx, id, nil); !errors.Is(err, ErrNotEnded) {
			h.Errorf("retry of a running task = %v, want %v", err, ErrNotEnded)
		}
		h.ok(c.End(ctx, json.RawMessage(`1`)))
		h.ok(c.Release(ctx))
		post, _, err := s.Outbox.Take(ctx, id)
		h.ok(err)
		h.ok(s.Outbox.MarkPosted(ctx, post))
		old := must(s.Get(ctx, id))

		got, err := s.Retry(ctx, id, nil)
		h.ok(err)
		want := task(1)
		want.State, want.Delivery, want.Fence, want.Worker, want.Created =
			Waiting, 2, old.Fence, old.Worker, old.Created
		if want.Retried = got.Retried; got.Retried.Before(old.Ended) {
			h.Errorf("tried again at %s, ended at %s", got.Retried, old.Ended)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			h.Error(diff)
		}
		for _, key := range []string{"errand:task:" + id, "errand:events:" + id} {
			if ttl := h.rdb.PTTL(ctx, key).Val(); ttl > 0 {
				h.Errorf("%s expires in %s", key, ttl)
			}
		}
		if _, due, err := s.Outbox.Take(ctx, id); due || err != nil {
			h.Errorf("it is in the outbox still: %t, %v", due, err)
		}
		if n := h.rdb.ZCard(ctx, "errand:expiring").Val(); n != 0 {
			h.Error("it counts as expiring still")
		}
		if live := must(s.Live(ctx)); len(live) != 1 || live[0].ID != id {
			h.Errorf("live: %v", live)
		}
		if list := must(s.List(ctx, ListQuery{})).Records; len(list) != 1 || list[0].ID != id {
			h.Errorf("listed: %v", list)
		}
		if c := h.claim(s, id); c.Record().Attempt != 1 {
			h.Errorf("attempt %d, want 1", c.Record().Attempt)
		}
		if _, err := s.Retry(ctx, "1700000000000009-none", nil); !errors.Is(err, ErrNotFound) {
			h.Errorf("retry = %v, want %v", err, ErrNotFound)
		}
	})
}

// A retry while the holder still posts: the old claim should end its work, and the new run start after it.
func TestRetryBeforeTheRelease(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.End(ctx, nil))
		must(s.Retry(ctx, c.ID(), nil))
		if _, err := s.Claim(ctx, c.ID(), 1, "w"); !errors.Is(err, ErrBusy) {
			h.Errorf("claim = %v, want %v", err, ErrBusy)
		}
		if _, _, err := c.refresh(ctx); err != nil {
			h.Errorf("the old claim is gone before its release: %v", err)
		}
		if err := c.Return(ctx, Wait{Counts: true}); !errors.Is(err, ErrStale) {
			h.Errorf("return = %v, want %v", err, ErrStale)
		}
		h.ok(c.Release(ctx))
		h.claim(s, c.ID())
	})
}

func TestReturnSaysWhy(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		h.ok(h.claim(s, id).Return(ctx, Wait{Why: "the limit is reached", Parked: "limit"}))
		got := must(s.Get(ctx, id))
		if got.Why != "the limit is reached" || got.Parks["limit"].Times != 1 || got.Attempt != 0 {
			h.Errorf("parked: %+v", got)
		}
		c := h.claim(s, id)
		if got := must(s.Get(ctx, id)); got.Why != "" || len(got.Parks) != 1 || c.Record().Parks["limit"].Times != 1 {
			h.Errorf("claimed: %+v", got)
		}
		h.ok(c.Return(ctx, Wait{Why: "again", Counts: true}))
		c = h.claim(s, id)
		h.ok(c.End(ctx, nil))
		must(s.Retry(ctx, id, nil))
		if got := must(s.Get(ctx, id)); got.Why != "" || len(got.Parks) != 0 {
			h.Errorf("tried again: %+v", got)
		}
	})
}

// Only a run can be taken over. If it is over without an ending, the task continues as if nobody had asked for it;
// other cancels stay.
func TestUntaken(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		cancel := func(cause, want string) {
			t.Helper()
			if rec := must(s.Cancel(ctx, id, "ann", cause)); rec.CancelCause != want {
				t.Errorf("cancelled for %q, want %q", rec.CancelCause, want)
			}
		}
		left := func(want string) {
			t.Helper()
			if rec := must(s.Get(ctx, id)); rec.State != Waiting || rec.CancelCause != want {
				t.Errorf("%s, cancelled for %q, want %q", rec.State, rec.CancelCause, want)
			}
		}
		cancel("taken", "")
		c := h.claim(s, id)
		cancel("taken", "taken")
		h.ok(c.Return(ctx, Wait{}))
		left("")
		c = h.claim(s, id)
		cancel("taken", "taken")
		h.crash(c)
		h.takeover(s, c)
		left("")
		c = h.claim(s, id)
		cancel("user", "user")
		h.ok(c.Return(ctx, Wait{}))
		left("user")
	})
}
