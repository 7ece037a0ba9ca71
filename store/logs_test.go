package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestLogsOfRuns(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		if _, err := s.Log(ctx, id, "log"); !errors.Is(err, ErrNotFound) {
			h.Errorf("before it ran: %v", err)
		}
		var want []string
		var first *Claim
		for n := range logParts + 2 {
			c := h.claim(s, id)
			if n == 0 {
				first = c
			}
			h.ok(c.Return(ctx, Wait{}))
			h.ok(c.SaveLog(ctx, "log", fmt.Appendf(nil, "part %d", n))) // also when it is not ours any more
			h.ok(c.SaveLog(ctx, "ndjson", []byte{0, 0xff, byte(n)}))
			if n >= 2 {
				want = append(want, fmt.Sprintf("part %d", n))
			}
		}
		parts := must(s.Log(ctx, id, "log"))
		var got []string
		for i, p := range parts {
			got = append(got, string(p.Data))
			if i > 0 && p.Fence <= parts[i-1].Fence {
				h.Error("the parts are out of order")
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			h.Errorf("parts %q, want %q", got, want)
		}
		if raw := must(s.Log(ctx, id, "ndjson")); len(raw) != logParts || !bytes.Equal(raw[0].Data, []byte{0, 0xff, 2}) {
			h.Errorf("the other log: %v", raw)
		}
		h.ok(first.SaveLog(ctx, "log", []byte("late")))
		if parts := must(s.Log(ctx, id, "log")); len(parts) != logParts || string(parts[0].Data) != "part 2" {
			h.Errorf("an old part came late: %v", parts)
		}
		if err := first.SaveLog(ctx, "log", make([]byte, maxLog+1)); !errors.Is(err, ErrTooLarge) {
			h.Errorf("a large part: %v", err)
		}
		h.ok(h.rdb.Del(ctx, "errand:task:"+id).Err())
		if err := first.SaveLog(ctx, "log", nil); !errors.Is(err, ErrNotFound) {
			h.Errorf("of a task that is gone: %v", err)
		}
		h.lapse("errand:log:"+id, 7*24*time.Hour)
	})
}

// vanish removes a part of a log between the look at what there is and its reading.
type vanish struct {
	counter
	remove func()
}

func (v *vanish) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "hkeys" {
			v.remove()
		}
		return err
	}
}

func TestLogIsReadWhileItIsTrimmed(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.Return(ctx, Wait{}))
		last := h.claim(s, c.ID())
		h.ok(c.SaveLog(ctx, "log", []byte("old")))
		h.ok(last.SaveLog(ctx, "log", []byte("new")))
		reader := dial(h.T, h.url)
		reader.AddHook(&vanish{remove: func() { h.rdb.HDel(ctx, "errand:log:"+c.ID(), c.fence+" log") }})
		parts, err := h.store(Config{Redis: reader}).Log(ctx, c.ID(), "log")
		if h.ok(err); len(parts) != 1 || string(parts[0].Data) != "new" || parts[0].Fence != last.Fence() {
			h.Errorf("parts: %v", parts)
		}
	})
}

// Whatever is about a task or its thread is gone some time after its end was posted.
func TestEverythingOfATaskExpires(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.ok(s.Alias(ctx, "also-t", "t"))
		rec := kin(1)
		rec.Scopes = []string{"user:u"}
		h.put(s, rec, kin(3))
		c := must(s.Claim(ctx, rec.ID, 0, "w", Cap{"user:", 1}))
		absorbed := h.take(c)
		must(c.Reserve(ctx, 1, threeDollars...))
		must(c.Spend(ctx, 1, threeDollars...))
		h.ok(c.Pushing(ctx, "acme/api", "errand/x", "1"))
		h.ok(c.Append(ctx, event(1)))
		must(c.Ask(ctx, "k", []byte(`"?"`)))
		must(s.Answer(ctx, rec.ID, "k", []byte(`"!"`), task(2).ID))
		h.ok(c.SaveCheckpoint(ctx, Checkpoint{Session: Session{ID: "s"}}))
		h.ok(c.SaveLog(ctx, "log", []byte("x")))
		h.ok(c.SaveSession(ctx, Session{ID: "s"}))
		must(s.Cancel(ctx, rec.ID, "ann", "user"))
		h.ok(c.EndWith(ctx, []byte(`{}`), Covered{IDs: []string{absorbed}}))
		post, _, err := s.TakeOutbox(ctx, rec.ID)
		h.ok(err)
		h.ok(s.Posted(ctx, post))
		h.ok(c.Release(ctx))
		seen := 0
		for key := range h.dump() {
			switch key {
			case "errand:tasks", "errand:expiring", "errand:fence": // trimmed, and a number
				continue
			}
			seen++
			if ttl := must(h.rdb.PTTL(ctx, key).Result()); ttl <= 0 {
				h.Errorf("%s is left for ever", key)
			}
		}
		if seen < 12 { // task and events of both, questions, spent, log, session, alias, pushed, spend of two scopes
			h.Errorf("only %d keys were there to expire", seen)
		}
	})
}

func TestLockedThread(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		lock, err := s.LockThread(ctx, "t", time.Minute)
		h.ok(err)
		if _, err := s.LockThread(ctx, "t", time.Minute); !errors.Is(err, ErrBusy) {
			h.Errorf("locked twice: %v", err)
		}
		id := h.submit(s, 1)
		if _, err := s.Claim(ctx, id, 0, "w"); !errors.Is(err, ErrBusy) {
			h.Errorf("claimed while it is locked: %v", err)
		}
		h.ok(lock.Release(ctx))
		if err := lock.Release(ctx); !errors.Is(err, ErrStale) {
			h.Errorf("released twice: %v", err)
		}
		busy := func(what string) {
			h.Helper()
			if _, err := s.LockThread(ctx, "t", time.Minute); !errors.Is(err, ErrBusy) {
				h.Errorf("locked while its task %s: %v", what, err)
			}
		}
		busy("waits")
		c := h.claim(s, id)
		busy("runs")
		h.lapse("errand:claim:t", 15*time.Second)
		busy("has lost its worker")
		h.takeover(s, c)
		c = h.claim(s, id)
		h.ok(c.End(ctx, nil))
		busy("is posted")
		h.ok(c.Release(ctx))
		must(s.LockThread(ctx, "t", time.Minute))
		h.lapse("errand:claim:t", time.Minute)
	})
}
