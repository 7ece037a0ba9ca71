package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Watch has the callbacks of [Claim.Keep], which may be nil. Keep calls each at most once from its own goroutine. They
// delay the next renewal, so they should cancel a context and return.
type Watch struct {
	Cancelled func(by, cause string) // the task was cancelled; the claim remains
	Lost      func(error)            // the claim is gone: ErrStale (perhaps another holder) or ErrOutage (no reply from Redis)
}

// Keep renews the claim every Refresh until ctx ends, the claim is given up, or it is lost. Call it once per claim.
// Each renewal reads the task's cancellation; a published hint makes Keep renew at once. If Redis restarted and lost
// the claim while the task is still the holder's, the claim is restored. While Redis does not answer, Keep retries
// five times as often for Outage.
func (c *Claim) Keep(ctx context.Context, w Watch) {
	cfg := c.store.cfg
	sub := c.store.redis.Subscribe(ctx, c.store.key.cancel())
	defer sub.Close()
	hints := sub.ChannelWithSubscriptions()
	k := &keeping{Claim: c, watch: w, renewals: make(chan renewal, 1), next: time.NewTimer(cfg.Refresh), outage: time.NewTimer(cfg.Outage)}
	defer k.next.Stop()
	defer k.outage.Stop()
	k.lastErr = errors.New("no answer yet")
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.done:
			return
		case <-k.outage.C:
			k.lost(ctx, fmt.Errorf("keep %s: %w: %w", c.ID(), ErrOutage, k.lastErr))
			return
		case hint, open := <-hints:
			if !open { // the client was closed: the renewals report it
				hints = nil
				continue
			}
			// A subscription, also after a reconnect, may be later than the message that it was for: renew then, too.
			if m, ok := hint.(*redis.Message); !ok || m.Payload == c.ID() {
				k.renew(ctx)
			}
		case <-k.next.C:
			k.renew(ctx)
		case r := <-k.renewals:
			if !k.handle(ctx, r) {
				return
			}
		}
	}
}

// keeping is the state of a Keep. It belongs to Keep's goroutine.
type keeping struct {
	*Claim
	watch        Watch
	renewals     chan renewal // one at a time; buffered, so that its goroutine can end after Keep
	next, outage *time.Timer

	renewing, again, cancelled bool
	lastErr                    error
}

// renewal is the result of a renewal.
type renewal struct {
	started   time.Time
	by, cause string
	err       error
}

// renew renews the claim on another goroutine, at most one at a time: a client blocks for its timeouts if Redis hangs,
// and neither Outage nor the end of ctx may wait for that.
func (k *keeping) renew(ctx context.Context) {
	if k.again = k.renewing; k.again {
		return
	}
	k.renewing = true
	go func() {
		r := renewal{started: time.Now()}
		ctx, cancel := context.WithTimeout(ctx, k.store.cfg.ClaimTTL) // a later answer is worthless
		defer cancel()
		r.by, r.cause, r.err = k.refresh(ctx)
		k.renewals <- r
	}()
}

// handle handles the result of a renewal. It returns false if the claim is lost.
func (k *keeping) handle(ctx context.Context, r renewal) bool {
	k.renewing = false
	switch {
	case errors.Is(r.err, ErrStale):
		k.lost(ctx, fmt.Errorf("keep %s: %w", k.ID(), ErrStale))
		return false
	case r.err != nil:
		k.lastErr = r.err
		k.next.Reset(k.store.cfg.Refresh / 5)
	default:
		k.next.Reset(k.store.cfg.Refresh)
		k.outage.Reset(k.store.cfg.Outage - time.Since(r.started))
		if r.cause != "" && !k.cancelled && k.watch.Cancelled != nil {
			k.cancelled = true
			k.watch.Cancelled(r.by, r.cause)
		}
	}
	if k.again {
		k.renew(ctx)
	}
	return true
}

// lost reports the loss of the claim, unless the holder gave it up.
func (k *keeping) lost(ctx context.Context, err error) {
	select {
	case <-k.done:
		return
	default:
	}
	if k.watch.Lost != nil && ctx.Err() == nil {
		k.watch.Lost(err)
	}
}
