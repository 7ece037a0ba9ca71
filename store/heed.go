package store

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// heed calls look at once, whenever subject is announced on the channel, and every Refresh in case an announcement was
// lost. It returns when look returns true, or with ctx's error when ctx ends.
func (s *db) heed(ctx context.Context, channel, subject string, look func() bool) error {
	sub := s.redis.Subscribe(ctx, channel)
	defer sub.Close()
	hints := sub.ChannelWithSubscriptions()
	tick := time.NewTicker(s.cfg.Refresh)
	defer tick.Stop()
	for !look() {
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-tick.C:
				again = true
			case hint, open := <-hints:
				if !open { // the client was closed
					hints = nil
					continue
				}
				// A subscription, first or after a reconnect, may be later than the message that it was for, so look
				// then, too.
				m, ok := hint.(*redis.Message)
				again = !ok || m.Payload == subject
			}
		}
	}
	return nil
}
