package store

import (
	"testing"
)

// All keys of a task and its thread should expire after the end was posted.
func TestEverythingOfATaskExpires(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.ok(s.Threads.Alias(ctx, "also-t", "t"))
		rec := kin(1)
		rec.Scopes = []string{"user:u"}
		h.put(s, rec, kin(3))
		c := must(s.Claim(ctx, rec.ID, 0, "w", Cap{"user:", 1}))
		absorbed := h.take(c)
		must(c.Reserve(ctx, 1, threeDollars...))
		must(c.Spend(ctx, Expense{USD: 1}, threeDollars...))
		h.ok(c.Pushing(ctx, "acme/api", "errand/x", "1"))
		h.ok(c.Append(ctx, event(1)))
		must(c.Ask(ctx, "k", []byte(`"?"`)))
		must(s.Questions.Answer(ctx, rec.ID, "k", []byte(`"!"`), task(2).ID))
		h.ok(c.SaveCheckpoint(ctx, Checkpoint{Session: Session{ID: "s"}}))
		h.ok(c.SaveLog(ctx, "log", []byte("x")))
		h.ok(c.SaveSession(ctx, Session{ID: "s"}))
		must(s.Cancel(ctx, rec.ID, "ann", "user"))
		h.ok(c.EndWith(ctx, []byte(`{}`), Covered{IDs: []string{absorbed}}))
		post, _, err := s.Outbox.Take(ctx, rec.ID)
		h.ok(err)
		h.ok(s.Outbox.MarkPosted(ctx, post))
		h.ok(c.Release(ctx))
		seen := 0
		for key := range h.dump() {
			switch key {
			// trimmed, two numbers, and a name
			case "errand:tasks", "errand:expiring", "errand:fence", "errand:looked", "errand:epoch":
				continue
			}
			seen++
			if ttl := must(h.rdb.PTTL(ctx, key).Result()); ttl <= 0 {
				h.Errorf("%s never expires", key)
			}
		}
		if seen < 12 { // task and events of both, questions, spent, log, session, alias, pushed, spend of two scopes
			h.Errorf("only %d keys were there to expire", seen)
		}
	})
}
