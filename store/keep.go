package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Watch is what a holder wants to hear of. Both are called from Keep's goroutine, each at most once, and hold up the next refresh:
// they should cancel a context and return. nil = not interested.
type Watch struct {
	Cancelled func(by, cause string) // somebody wrote the tombstone; the claim goes on
	Lost      func(error)            // the claim is gone: ErrStale = another's or nobody's, ErrOutage = unknown for too long
}

// Keep holds the claim until ctx ends, the claim is given up, or it is lost; it blocks, and there is one Keep per claim. It renews the
// claim every Refresh and looks for the tombstone then; a published hint makes it look at once. A claim that vanished while the task
// is still ours (Redis restarted) is put back. While Redis does not answer it tries on, five times as often, for Outage.
func (c *Claim) Keep(ctx context.Context, w Watch) {
	cfg := c.store.cfg
	sub := c.store.redis.Subscribe(ctx, c.store.key.cancel())
	defer sub.Close()
	hints := sub.ChannelWithSubscriptions()

	next := time.NewTimer(cfg.Refresh)
	defer next.Stop()
	outage := time.NewTimer(cfg.Outage)
	defer outage.Stop()

	type answer struct {
		asked     time.Time
		by, cause string
		err       error
	}
	// Each question has its own goroutine, at most one at a time, because a client blocks for its timeouts when Redis hangs, and neither
	// Outage nor the end of ctx may wait for that. The buffer lets it end after we have left.
	answers := make(chan answer, 1)
	asking, again, told := false, false, false
	ask := func() {
		if again = asking; again {
			return
		}
		asking = true
		go func() {
			a := answer{asked: time.Now()}
			ctx, cancel := context.WithTimeout(ctx, cfg.ClaimTTL) // an answer later than that is worth nothing
			defer cancel()
			a.by, a.cause, a.err = c.refresh(ctx)
			answers <- a
		}()
	}
	lost := func(err error) {
		if w.Lost != nil && ctx.Err() == nil && !c.gaveUp() {
			w.Lost(err)
		}
	}

	err := errors.New("no answer yet")
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.done:
			return
		case <-outage.C:
			lost(fmt.Errorf("keep %s: %w: %w", c.ID(), ErrOutage, err))
			return
		case hint, open := <-hints:
			if !open { // the client was closed: no more hints, and refreshes tell the rest
				hints = nil
				continue
			}
			// A subscription, first or after a reconnect, may have come after the message it was for: look then, too.
			if m, ok := hint.(*redis.Message); !ok || m.Payload == c.ID() {
				ask()
			}
		case <-next.C:
			ask()
		case a := <-answers:
			asking = false
			switch {
			case errors.Is(a.err, ErrStale):
				lost(fmt.Errorf("keep %s: %w", c.ID(), ErrStale))
				return
			case a.err != nil:
				err = a.err
				next.Reset(cfg.Refresh / 5)
			default:
				next.Reset(cfg.Refresh)
				outage.Reset(cfg.Outage - time.Since(a.asked))
				if a.cause != "" && !told && w.Cancelled != nil {
					told = true
					w.Cancelled(a.by, a.cause)
				}
			}
			if again {
				ask()
			}
		}
	}
}

func (c *Claim) gaveUp() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
