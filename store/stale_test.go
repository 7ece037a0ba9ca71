package store

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAStaleHolderChangesNothing takes a claim away in every possible way and lets the old holder try every step.
func TestAStaleHolderChangesNothing(t *testing.T) {
	ways := map[string]func(h *harness, s *Store, c *Claim){
		"requeued": func(h *harness, s *Store, c *Claim) { h.takeover(s, c) },
		"claimed":  func(h *harness, s *Store, c *Claim) { h.takeover(s, c); h.claim(s, c.ID()) },
		"ended": func(h *harness, s *Store, c *Claim) {
			h.takeover(s, c)
			h.ok(h.claim(s, c.ID()).End(h.Context(), nil))
		},
		"withdrawn": func(h *harness, s *Store, c *Claim) {
			h.takeover(s, c)
			must(s.EndWaiting(h.Context(), c.ID(), nil))
		},
		"next in thread": func(h *harness, s *Store, c *Claim) { withdrawn(h, s, c); h.claim(s, h.submit(s, 2)) },
		"tried again": func(h *harness, s *Store, c *Claim) {
			withdrawn(h, s, c)
			must(s.Retry(h.Context(), c.ID(), nil))
		},
	}
	acts := map[string]func(h *harness, c *Claim) error{
		"append": func(h *harness, c *Claim) error { return c.Append(h.Context(), json.RawMessage(`1`)) },
		"save":   func(h *harness, c *Claim) error { return c.SaveSession(h.Context(), Session{ID: "old"}) },
		"checkpoint": func(h *harness, c *Claim) error {
			return c.SaveCheckpoint(h.Context(), Checkpoint{Session: Session{ID: "old"}})
		},
		"reserve": func(h *harness, c *Claim) error {
			_, err := c.Reserve(h.Context(), 1, Budget{Fleet, 10})
			return err
		},
		"spend": func(h *harness, c *Claim) error {
			_, err := c.Spend(h.Context(), Expense{USD: 1})
			return err
		},
		"take": func(h *harness, c *Claim) error {
			_, _, err := c.Take(h.Context(), true, nil)
			return err
		},
		"give back": func(h *harness, c *Claim) error { return c.GiveBack(h.Context(), true, "x") },
		"lend":      func(h *harness, c *Claim) error { return c.Lend(h.Context()) },
		"back":      func(h *harness, c *Claim) error { return c.TakeBack(h.Context()) },
		"idle":      func(h *harness, c *Claim) error { return c.Idle(h.Context(), "x") },
		"push":      func(h *harness, c *Claim) error { return c.Pushing(h.Context(), "acme/api", "errand/x", "old") },
		"end":       func(h *harness, c *Claim) error { return c.End(h.Context(), json.RawMessage(`"old"`)) },
		"return":    func(h *harness, c *Claim) error { return c.Return(h.Context(), Wait{Counts: true}) },
		"refresh": func(h *harness, c *Claim) error {
			_, _, err := c.refresh(h.Context())
			return err
		},
		"release": func(h *harness, c *Claim) error {
			err := c.Release(h.Context())
			if n := must(h.rdb.Exists(h.Context(), "errand:claim:t").Result()); n == 0 && err == nil {
				return ErrStale // there was nothing to release
			}
			return err
		},
	}
	onRedis(t, func(h *harness) {
		for way, takeAway := range ways {
			for act, try := range acts {
				h.empty()
				s := h.store(Config{})
				c := h.claim(s, h.submit(s, 1))
				h.ok(c.SaveSession(h.Context(), Session{ID: "new"}))
				h.ok(c.SaveCheckpoint(h.Context(), Checkpoint{Session: Session{ID: "new"}}))
				h.crash(c)
				takeAway(h, s, c)
				before := h.dump()
				if err := try(h, c); !errors.Is(err, ErrStale) {
					h.Errorf("%s, then %s = %v, want %v", way, act, err, ErrStale)
				}
				if diff := cmp.Diff(before, h.dump()); diff != "" {
					h.Errorf("%s, then %s changed something:\n%s", way, act, diff)
				}
			}
		}
	})
}

func withdrawn(h *harness, s *Store, c *Claim) {
	h.Helper()
	h.takeover(s, c)
	must(s.EndWaiting(h.Context(), c.ID(), nil))
}

// Who has ended a task and then lost the claim, without knowing, neither stops the thread's next run nor brings its
// old session back.
func TestEndedHolderComesTooLate(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		old := h.claim(s, h.submit(s, 1))
		h.ok(old.End(ctx, nil))
		h.crash(old)
		next := h.claim(s, h.submit(s, 2))
		h.crash(next) // Redis loses its claim as well
		if _, _, err := old.refresh(ctx); !errors.Is(err, ErrStale) {
			h.Errorf("refresh = %v, want %v", err, ErrStale)
		}
		if _, _, err := next.refresh(ctx); err != nil {
			h.Errorf("refresh of the running task: %v", err)
		}
		h.ok(next.SaveSession(ctx, Session{ID: "new"}))
		h.ok(next.End(ctx, nil))
		h.ok(next.Release(ctx))
		if _, _, err := old.refresh(ctx); err != nil { // the thread is free
			h.Error(err)
		}
		if err := old.SaveSession(ctx, Session{ID: "old"}); !errors.Is(err, ErrStale) {
			h.Errorf("save = %v, want %v", err, ErrStale)
		}
		if ses := must(s.Threads.Session(ctx, "t")); ses.ID != "new" {
			h.Errorf("the session is %q", ses.ID)
		}
	})
}
