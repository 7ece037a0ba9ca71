package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// Epoch names the data that Redis has. It is made at the first start, and is another one when Redis has lost its data since: lost is when that
// was noticed, zero if it never was. known is what an earlier call returned, "" before the first: only who knows an epoch can miss it.
func (s *Doctor) Epoch(ctx context.Context, known string) (epoch string, lost time.Time, err error) {
	r, err := s.run(ctx, "epoch", known, rand.Text())
	if err != nil {
		return "", time.Time{}, fmt.Errorf("look for redis' epoch: %w", err)
	}
	return r.text(1), fromMicros(r.text(2)), nil
}

// loss tells for [Config.Retention] that Redis has lost its data.
func (s *Doctor) loss(ctx context.Context, now time.Time) ([]Finding, error) {
	r, err := s.redis.HMGet(ctx, s.key.epoch(), "lost").Result()
	if err != nil {
		return nil, fmt.Errorf("look for redis' epoch: %w", err)
	}
	lost := fromMicros(reply(r).text(0))
	if lost.IsZero() || now.Sub(lost) > s.cfg.Retention {
		return nil, nil
	}
	return []Finding{{
		Warning, "Redis lost its data at " + lost.Format("2006-01-02 15:04:05 UTC"),
		"Tasks that waited are gone, and their threads begin new conversations. Runs under way went on.",
		"Find out why: FLUSHALL, a volume that is not mounted, or a restart without appendonly. Ask again for what waited. This is shown for " +
			fmt.Sprintf("%.0f days.", s.cfg.Retention.Hours()/24),
	}}, nil
}
