package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// resend is a client that loses the first reply to a script and sends it again, as go-redis does.
type resend struct{ passing }

func (r *resend) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" || cmd.Name() == "eval" { // eval if Redis does not have the script yet
			_ = next(ctx, cmd)
			cmd.SetErr(nil)
		}
		return next(ctx, cmd)
	}
}

// TestLostAnswers runs each step with and without lost replies. Results and Redis should be the same.
func TestLostAnswers(t *testing.T) {
	steps := map[string]func(h *harness, s *Store, c *Claim) any{
		"submit": func(h *harness, s *Store, _ *Claim) any {
			return result(s.Get(h.Context(), h.put(s, kin(9))[0]))
		},
		"claim": func(h *harness, s *Store, _ *Claim) any {
			return failed(s.Claim(h.Context(), other(h, s), 0, "w"))
		},
		"take":      func(h *harness, _ *Store, c *Claim) any { return h.take(c) },
		"give back": func(h *harness, _ *Store, c *Claim) any { return c.GiveBack(h.Context(), true, h.take(c)) },
		"ask": func(h *harness, _ *Store, c *Claim) any {
			return result(c.Ask(h.Context(), "k", json.RawMessage(`1`)))
		},
		"first": func(h *harness, _ *Store, c *Claim) any { return result(c.First(h.Context(), "k")) },
		"first of one that waits": func(h *harness, s *Store, _ *Claim) any {
			return result(s.Questions.FirstWhileWaiting(h.Context(), other(h, s), "k"))
		},
		"reserve": func(h *harness, _ *Store, c *Claim) any {
			return result(c.Reserve(h.Context(), 1, threeDollars...))
		},
		"spend": func(h *harness, _ *Store, c *Claim) any {
			return result(c.Spend(h.Context(), Expense{USD: 2.7}, threeDollars...))
		},
		"push":       func(h *harness, _ *Store, c *Claim) any { return c.Pushing(h.Context(), "acme/api", "b", "1") },
		"session":    func(h *harness, _ *Store, c *Claim) any { return c.SaveSession(h.Context(), Session{ID: "s"}) },
		"checkpoint": func(h *harness, _ *Store, c *Claim) any { return c.SaveCheckpoint(h.Context(), Checkpoint{}) },
		"log":        func(h *harness, _ *Store, c *Claim) any { return c.SaveLog(h.Context(), "log", []byte("x")) },
		"cancel": func(h *harness, s *Store, c *Claim) any {
			return result(s.Cancel(h.Context(), c.ID(), "ann", "user"))
		},
		"return": func(h *harness, _ *Store, c *Claim) any {
			return c.Return(h.Context(), Wait{Why: "x", Parked: "limit"})
		},
		"end": func(h *harness, _ *Store, c *Claim) any {
			return c.EndWith(h.Context(), json.RawMessage(`1`),
				Covered{IDs: []string{h.take(c)}, Ending: json.RawMessage(`2`)})
		},
		"lend": func(h *harness, _ *Store, c *Claim) any {
			return []any{c.Lend(h.Context()), c.TakeBack(h.Context()), c.Idle(h.Context(), "x")}
		},
		"release": func(h *harness, _ *Store, c *Claim) any {
			h.ok(c.End(h.Context(), nil))
			return c.Release(h.Context())
		},
		"requeue": func(h *harness, s *Store, c *Claim) any {
			h.crash(c)
			return result(s.Requeue(h.Context(), c.ID(), 0, c.Fence(), true))
		},
		"end waiting": func(h *harness, s *Store, _ *Claim) any {
			return result(s.EndWaiting(h.Context(), other(h, s), nil))
		},
		"retry": func(h *harness, s *Store, c *Claim) any {
			h.ok(c.End(h.Context(), nil))
			return result(s.Retry(h.Context(), c.ID(), nil))
		},
		"answer": func(h *harness, s *Store, c *Claim) any {
			_ = must(c.Ask(h.Context(), "k", json.RawMessage(`1`)))
			return result(s.Questions.Answer(h.Context(), c.ID(), "k", json.RawMessage(`2`), task(7).ID))
		},
		"outbox": func(h *harness, s *Store, c *Claim) any {
			h.ok(c.End(h.Context(), nil))
			p, ok, err := s.Outbox.Take(h.Context(), c.ID())
			return []any{p.Attempt, ok, err, s.Outbox.Postpone(h.Context(), p, Delay{At: time.UnixMicro(1)})}
		},
		"posted": func(h *harness, s *Store, c *Claim) any {
			h.ok(c.End(h.Context(), nil))
			p, _, err := s.Outbox.Take(h.Context(), c.ID())
			return []any{p.Attempt, err, s.Outbox.MarkPosted(h.Context(), p)}
		},
		"alias": func(h *harness, s *Store, _ *Claim) any { return s.Threads.Alias(h.Context(), "a", "b") },
		"beat": func(h *harness, s *Store, _ *Claim) any {
			return failed(s.Workers.Beat(h.Context(), Worker{ID: "w"}))
		},
		"move": func(h *harness, s *Store, _ *Claim) any {
			return s.Move(h.Context(), Record{ID: other(h, s)}, "gpu")
		},
		"pause": func(h *harness, s *Store, _ *Claim) any {
			return s.Paused.Add(h.Context(), "review", Halt{By: "Ada", Since: time.Unix(2e9, 0)})
		},
		"lock thread": func(h *harness, s *Store, _ *Claim) any {
			return failed(s.Threads.Lock(h.Context(), "idle", never))
		},
		"hold": func(h *harness, s *Store, _ *Claim) any {
			return s.Credentials.Hold(h.Context(), "c", time.Unix(2e9+9, 0), time.Second, "")
		},
		"slow": func(h *harness, s *Store, _ *Claim) any { return s.Credentials.Slow(h.Context(), "c") },
	}
	onMini(t, func(h *harness) {
		again := dial(h.T, h.url)
		again.AddHook(&resend{})
		for name, step := range steps {
			var seen [2]string
			for i, client := range []*redis.Client{h.rdb, again} {
				h.empty()
				h.mini.SetTime(time.Unix(2e9, 0)) // the same times in both worlds
				calm := h.store(Config{})
				c := h.claim(calm, h.put(calm, kin(1), kin(2))[0])
				s := h.store(Config{Redis: client})
				c.store = s
				h.mini.SetTime(time.Unix(2e9+1, 0))
				result := step(h, s, c)
				seen[i] = nonces.ReplaceAllString(fmt.Sprintf("%+v\n%+v", result, h.dump()), "nonce")
			}
			if diff := cmp.Diff(seen[0], seen[1]); diff != "" {
				h.Errorf("%s, sent again:\n%s", name, diff)
			}
		}
	})
}

var nonces = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)

// result is a step's result, to compare.
func result[T any](v T, err error) any { return []any{v, err} }

func failed[T any](_ T, err error) error { return err }

// other submits a task of another thread.
func other(h *harness, s *Store) string { return h.submitTo(s, 5, "other") }
