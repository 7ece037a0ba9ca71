package store

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// With many concurrent processes, only as many as the limit should get a turn; the others should get the time of the
// next.
func TestTurnsAreShared(t *testing.T) {
	onBoth(t, func(h *harness) {
		const burst = 5
		var taken, refused atomic.Int32
		var asking sync.WaitGroup
		for range 4 {
			s := h.store(Config{Redis: dial(h.T, h.url)})
			asking.Go(func() {
				for range burst {
					wait, err := s.Memos.Allow(h.Context(), "slack/T1/edit", time.Hour, burst)
					switch {
					case err != nil:
						h.Error(err)
					case wait == 0:
						taken.Add(1)
					case wait > time.Hour:
						h.Errorf("the next turn is in %s", wait)
					default:
						refused.Add(1)
					}
				}
			})
		}
		asking.Wait()
		if taken.Load() != burst || refused.Load() != 3*burst {
			h.Errorf("%d got a turn and %d none, want %d and %d", taken.Load(), refused.Load(), burst, 3*burst)
		}
		s := h.store(Config{})
		if wait, err := s.Memos.Allow(h.Context(), "slack/T2/edit", time.Hour, burst); err != nil || wait != 0 {
			h.Errorf("another name waits %s, %v", wait, err)
		}
	})
}

// A turn should come back with time, and unused limits should leave no keys.
func TestTurnsComeBack(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		for range 2 {
			if wait, err := s.Memos.Allow(h.Context(), "x", time.Minute, 1); err != nil || wait < 0 ||
				wait > time.Minute {
				h.Errorf("wait %s, %v", wait, err)
			}
		}
		h.lapse("errand:rate:x", time.Minute)
		if wait, err := s.Memos.Allow(h.Context(), "x", time.Minute, 1); err != nil || wait != 0 {
			h.Errorf("after a minute: wait %s, %v", wait, err)
		}
	})
}
