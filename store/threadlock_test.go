package store

import (
	"errors"
	"testing"
	"time"
)

func TestLockedThread(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		lock, err := s.Threads.Lock(ctx, "t", time.Minute)
		h.ok(err)
		if _, err := s.Threads.Lock(ctx, "t", time.Minute); !errors.Is(err, ErrBusy) {
			h.Errorf("locked twice: %v", err)
		}
		id := h.submit(s, 1)
		if _, err := h.ask(s, id); !errors.Is(err, ErrBusy) {
			h.Errorf("claimed while it is locked: %v", err)
		}
		h.ok(lock.Release(ctx))
		if err := lock.Release(ctx); !errors.Is(err, ErrStale) {
			h.Errorf("released twice: %v", err)
		}
		busy := func(what string) {
			h.Helper()
			if _, err := s.Threads.Lock(ctx, "t", time.Minute); !errors.Is(err, ErrBusy) {
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
		must(s.Threads.Lock(ctx, "t", time.Minute))
		h.lapse("errand:claim:t", time.Minute)
	})
}
