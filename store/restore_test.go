package store

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// If Redis has lost a running task, the holder's next step restores it.
func TestRecordIsPutBack(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx := h.Context()
		for act, try := range map[string]func(*Claim) error{
			"refresh":    func(c *Claim) error { _, _, err := c.refresh(ctx); return err },
			"session":    func(c *Claim) error { return c.SaveSession(ctx, Session{ID: "s"}) },
			"checkpoint": func(c *Claim) error { return c.SaveCheckpoint(ctx, Checkpoint{}) },
			"spend":      func(c *Claim) error { _, err := c.Spend(ctx, Expense{USD: 1}); return err },
			"push":       func(c *Claim) error { return c.Pushing(ctx, "acme/api", "b", "1") },
			"return":     func(c *Claim) error { return c.Return(ctx, Wait{}) },
			"end":        func(c *Claim) error { return c.End(ctx, json.RawMessage(`1`)) },
		} {
			s := h.store(Config{})
			rec := task(1)
			rec.Scopes = []string{"repo:a/b"}
			_, _, err := s.Submit(ctx, rec)
			h.ok(err)
			c, err := s.Claim(ctx, rec.ID, 0, "w", Cap{"repo:a/b", 1})
			h.ok(err)
			h.ok(h.rdb.FlushAll(ctx).Err())
			if err := try(c); err != nil {
				h.Errorf("%s: %v", act, err)
			}
			want := map[string]State{"return": Waiting, "end": Ended}[act]
			if want == "" {
				want = Running
				if live := must(s.Running(ctx)); len(live) != 1 || !live[0].Claimed {
					h.Errorf("after %s it runs as %+v", act, live)
				}
				behind := h.submit(s, 2)
				if _, err := h.ask(s, behind); !errors.Is(err, ErrBusy) {
					h.Errorf("after %s, claim of the next: %v", act, err)
				}
				other := task(3)
				other.Thread, other.Scopes = "other", rec.Scopes
				_, _, err := s.Submit(ctx, other)
				h.ok(err)
				if _, err := h.ask(s, other.ID, Cap{"repo:a/b", 1}); !isFull(err) {
					h.Errorf("after %s, claim beyond the cap: %v", act, err)
				}
			}
			if got := must(s.Get(ctx, rec.ID)); got.State != want || string(got.Task) != string(rec.Task) ||
				!c.Restored() {
				h.Errorf("after %s: %+v", act, got)
			}
			h.ok(h.rdb.FlushAll(ctx).Err())
		}
	})
}

// A crash counts for a restored suspect that has started since it was claimed.
func TestSuspectIsPutBackAsBegun(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.crash(c)
		h.takeover(s, c)
		c = h.claim(s, c.ID())
		h.ok(c.Idle(h.Context(), ""))
		h.ok(h.rdb.FlushAll(h.Context()).Err())
		if _, _, err := c.refresh(h.Context()); err != nil {
			h.Error(err)
		}
		h.crash(c)
		h.takeover(s, c)
		if rec := must(s.Get(h.Context(), c.ID())); rec.Crashes != 2 {
			h.Errorf("%d crashes", rec.Crashes)
		}
	})
}

func isFull(err error) bool {
	_, ok := errors.AsType[*Full](err)
	return ok
}

// What was submitted again meanwhile is the same task; what has begun in the thread since keeps its right, and the
// older task gets its ending.
func TestRecordIsPutBackAmongOthers(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.ok(h.rdb.FlushAll(ctx).Err())
		h.submit(s, 1)
		if _, _, err := c.refresh(ctx); err != nil {
			h.Error(err)
		}
		if _, err := s.Claim(ctx, c.ID(), 0, "w"); !errors.Is(err, ErrRunning) {
			h.Errorf("second claim: %v", err)
		}

		h.ok(h.rdb.FlushAll(ctx).Err())
		next := h.claim(s, h.submit(s, 2))
		if _, _, err := c.refresh(ctx); !errors.Is(err, ErrStale) {
			h.Errorf("refresh beside the next: %v", err)
		}
		if err := c.Return(ctx, Wait{}); !errors.Is(err, ErrStale) {
			h.Errorf("return beside the next: %v", err)
		}
		h.ok(c.End(ctx, json.RawMessage(`"gone"`)))
		if rec := must(s.Get(ctx, c.ID())); rec.State != Ended || string(rec.Ending) != `"gone"` {
			h.Errorf("ended as %+v", rec)
		}
		if _, ok, err := s.Outbox.Take(ctx, c.ID()); !ok || err != nil {
			h.Errorf("its message: %t, %v", ok, err)
		}
		h.ok(next.End(ctx, nil))

		// An ended task should not be restored.
		h.ok(h.rdb.FlushAll(ctx).Err())
		if _, _, err := next.refresh(ctx); !errors.Is(err, ErrStale) {
			h.Errorf("refresh after the end: %v", err)
		}
	})
}

func TestEpoch(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		epoch := func(known string, wantSame, wantLost bool) string {
			h.Helper()
			got, lost, err := s.Doctor.Epoch(ctx, known)
			if err != nil || (got == known) != wantSame || lost.IsZero() == wantLost {
				h.Errorf("epoch %s after %q, lost %s, %v", got, known, lost, err)
			}
			return got
		}
		first := epoch("", false, false)
		epoch(first, true, false)
		h.ok(h.rdb.FlushAll(ctx).Err())
		second := epoch(first, false, true)
		epoch(second, true, true)
		h.ok(h.rdb.FlushAll(ctx).Err())
		third := epoch("", false, false) // a new process
		epoch(second, false, true)
		epoch(third, true, true)

		if found := must(s.Doctor.Diagnose(ctx)); !slices.ContainsFunc(found, func(f Finding) bool {
			return f.Severity == Warning && strings.HasPrefix(f.What, "Redis lost its data at ")
		}) {
			h.Errorf("%+v", found)
		}
		if found := must(s.Doctor.loss(ctx, time.Now().Add(8*24*time.Hour))); len(found) != 0 {
			h.Errorf("a week later: %+v", found)
		}
	})
}
