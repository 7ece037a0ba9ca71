package store

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Unposted is what waits in the outbox for its final message to be out.
type Unposted struct {
	Endings int
	Oldest  time.Time // when the one ended that waits longest; zero: none waits
}

// lookedAt is how many endings of the outbox Unposted looks at: those that are due first.
const lookedAt = 1000

// Backlog looks at the outbox, in two round trips. The oldest is that of the first 1,000.
func (s *Outbox) Backlog(ctx context.Context) (Unposted, error) {
	var count *redis.IntCmd
	var ids *redis.StringSliceCmd
	_, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		count, ids = p.ZCard(ctx, s.key.outbox()), p.ZRange(ctx, s.key.outbox(), 0, lookedAt-1)
		return nil
	})
	if err != nil {
		return Unposted{}, fmt.Errorf("look at the outbox: %w", err)
	}
	u := Unposted{Endings: int(count.Val())}
	if len(ids.Val()) == 0 {
		return u, nil
	}
	ended := make([]*redis.SliceCmd, len(ids.Val()))
	err = s.pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids.Val() {
			ended[i] = p.HMGet(ctx, s.key.task(id), "ended")
		}
		return nil
	})
	if err != nil {
		return Unposted{}, fmt.Errorf("look at the outbox: %w", err)
	}
	for _, e := range ended {
		if at := fromMicros(reply(e.Val()).text(0)); !at.IsZero() && (u.Oldest.IsZero() || at.Before(u.Oldest)) {
			u.Oldest = at
		}
	}
	return u, nil
}
