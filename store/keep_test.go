package store

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/errand-fleet/errand/internal/await"
)

const never = time.Hour // for tests that must not pass because of a Refresh

// kept is a claim with its Keep running.
type kept struct {
	cancelled signal[[2]string]
	lost      signal[error]
	ended     chan struct{}
	stop      context.CancelFunc
}

func keep(h *harness, c *Claim) *kept {
	k := &kept{make(signal[[2]string], 9), make(signal[error], 9), make(chan struct{}), nil}
	ctx, cancel := context.WithCancel(h.Context())
	k.stop = cancel
	go func() {
		defer close(k.ended)
		c.Keep(ctx, Watch{
			Cancelled: func(by, cause string) { k.cancelled.fire([2]string{by, cause}) },
			Lost:      k.lost.fire,
		})
	}()
	h.Cleanup(func() { cancel(); <-k.ended })
	return k
}

// quiet waits for the end of Keep and checks that no callback is left.
func (k *kept) quiet(h *harness) {
	h.Helper()
	<-k.ended
	if len(k.lost) > 0 || len(k.cancelled) > 0 {
		h.Errorf("%d losses and %d cancels too many", len(k.lost), len(k.cancelled))
	}
}

func TestKeepHearsOfACancelAtOnce(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{Refresh: never, ClaimTTL: 2 * never, Outage: 2 * never})
		id := h.submit(s, 1)
		c, err := s.Claim(ctx, id, 0, "w")
		h.ok(err)
		k := keep(h, c)
		must(s.Cancel(ctx, id, "U1", "user"))
		if got := k.cancelled.wait(h); got != [2]string{"U1", "user"} {
			h.Errorf("cancelled by %v", got)
		}
		must(s.Cancel(ctx, id, "U2", "again"))
		// It is subscribed now and was notified once. Only the hint makes it look: the fence has moved.
		h.ok(h.rdb.HSet(ctx, "errand:task:"+id, "fence", "1").Err())
		h.ok(h.rdb.Publish(ctx, "errand:cancel", id).Err())
		if err := k.lost.wait(h); !errors.Is(err, ErrStale) {
			h.Errorf("lost: %v, want %v", err, ErrStale)
		}
		k.quiet(h)
	})
}

func TestKeepNeedsNoHint(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{Refresh: 5 * time.Millisecond})
		id := h.submit(s, 1)
		c, key := h.claim(s, id), "errand:task:"+id
		k := keep(h, c)
		h.ok(h.rdb.HSet(ctx, key, "cancel_by", "U1", "cancel_cause", "user").Err())
		if got := k.cancelled.wait(h); got != [2]string{"U1", "user"} {
			h.Errorf("cancelled by %v", got)
		}
		h.ok(h.rdb.Set(ctx, "errand:claim:t", "9 another holder", 0).Err())
		if err := k.lost.wait(h); !errors.Is(err, ErrStale) {
			h.Errorf("lost: %v, want %v", err, ErrStale)
		}
		k.quiet(h)
		if got := h.rdb.Get(ctx, "errand:claim:t").Val(); got != "9 another holder" {
			h.Errorf("the claim is %q", got)
		}
	})
}

func TestKeepEndsQuietly(t *testing.T) {
	ways := map[string]func(*harness, *Claim, *kept){
		"context":  func(_ *harness, _ *Claim, k *kept) { k.stop() },
		"released": func(h *harness, c *Claim, _ *kept) { h.ok(c.End(h.Context(), nil)); h.ok(c.Release(h.Context())) },
		"returned": func(h *harness, c *Claim, _ *kept) { h.ok(c.Return(h.Context(), Wait{Counts: true})) },
	}
	onBoth(t, func(h *harness) {
		n := 0
		for _, end := range ways {
			for range 5 { // renew often, so that a renewal is in progress
				s := h.store(Config{Refresh: time.Millisecond})
				n++
				rec := task(n)
				rec.Thread = rec.ID
				_, _, err := s.Submit(h.Context(), rec)
				h.ok(err)
				c := h.claim(s, rec.ID)
				k := keep(h, c)
				must(s.Cancel(h.Context(), rec.ID, "U1", "now it runs"))
				k.cancelled.wait(h)
				end(h, c, k)
				k.quiet(h)
			}
		}
	})
}

func TestKeepGivesUpAfterAnOutage(t *testing.T) {
	onBoth(t, func(h *harness) {
		s, network := h.behindProxy(Config{Refresh: 5 * time.Millisecond, Outage: 200 * time.Millisecond})
		id := h.submit(s, 1)
		k := keep(h, h.claim(s, id))
		must(s.Cancel(h.Context(), id, "U1", "now it runs"))
		select {
		case <-k.cancelled: // Redis replies
		case <-k.ended: // this machine is so busy that no reply came in time, which is an outage as well
		}
		network.setCut(true)
		if err := k.lost.wait(h); !errors.Is(err, ErrOutage) {
			h.Errorf("lost: %v, want %v", err, ErrOutage)
		}
		<-k.ended
		if len(k.lost) > 0 {
			h.Errorf("%d losses too many", len(k.lost))
		}
	})
}

func TestKeepSurvivesAShortOutage(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx := h.Context()
		s, network := h.behindProxy(Config{Refresh: 5 * time.Millisecond})
		id := h.submit(s, 1)
		k := keep(h, h.claim(s, id))
		network.setCut(true)
		// Redis comes back without the claim. The cancel, from a worker with a better network, tells us that Keep is
		// through again.
		h.ok(h.rdb.Del(ctx, "errand:claim:t").Err())
		must(h.store(Config{}).Cancel(ctx, id, "U1", "user"))
		network.setCut(false)
		k.cancelled.wait(h)
		if live := must(s.Live(ctx)); len(live) != 1 || !live[0].Claimed {
			h.Errorf("live: %+v, want it claimed again", live)
		}
		k.stop()
		k.quiet(h)
	})
}

// Not parallel: it counts goroutines.
func TestKeepLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("many", func(t *testing.T) {
		mini := miniredis.RunT(t)
		h := newHarness(t, "redis://"+mini.Addr(), mini)
		s := h.store(Config{Refresh: time.Millisecond})
		for n := range 20 {
			id := h.submit(s, n)
			c := h.claim(s, id)
			k := keep(h, c)
			must(s.Cancel(h.Context(), id, "U1", "now it runs"))
			k.cancelled.wait(h)
			h.ok(c.End(h.Context(), nil))
			h.ok(c.Release(h.Context()))
			<-k.ended
		}
	})
	limit := time.After(await.Bound)
	for runtime.NumGoroutine() > before {
		select {
		case <-limit:
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before,
				stacks[:runtime.Stack(stacks, true)])
		default:
			runtime.Gosched() // go-redis' last goroutines are ending
		}
	}
}
