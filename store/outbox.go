package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Post is a lease on an ended task whose final message is due.
type Post struct {
	ID      string // the task
	Attempt int    // 1 = the first; from 2 on, an earlier attempt may have posted the message without recording it

	delivery int // the lease's token, together with Attempt: attempts start again when a task is retried
}

// Take leases a task whose message is due for OutboxLease: the given task, or with id "" the one that has been due
// longest. It returns false if the task has not ended, or is posted, leased or postponed. For 10 s after [Claim.End]
// the task must be requested by ID: the worker that ended it still has its report open.
func (s *Outbox) Take(ctx context.Context, id string) (Post, bool, error) {
	r, err := s.run(ctx, "takeoutbox", id, s.cfg.OutboxLease.Microseconds(), rand.Text())
	if err != nil {
		return Post{}, false, fmt.Errorf("take outbox %s: %w", id, err)
	}
	if r.text(0) == "no" {
		return Post{}, false, nil
	}
	return Post{ID: r.text(1), Attempt: r.number(2), delivery: r.number(3)}, true, nil
}

// MarkPosted records that the final message is posted. The record and its events then expire after Retention. It
// returns [ErrStale] if another process has the lease; that process then decides.
func (s *Outbox) MarkPosted(ctx context.Context, p Post) error {
	_, err := s.run(ctx, "posted", p.ID, p.delivery, p.Attempt, s.cfg.Retention.Milliseconds())
	if err != nil {
		return fmt.Errorf("mark %s posted: %w", p.ID, err)
	}
	return nil
}

// Postpone returns the lease and makes the message due at the given time, by Redis' clock. It returns [ErrStale] like
// MarkPosted.
func (s *Outbox) Postpone(ctx context.Context, p Post, at time.Time) error {
	if _, err := s.run(ctx, "postlater", p.ID, p.delivery, p.Attempt, micros(at)); err != nil {
		return fmt.Errorf("post %s later: %w", p.ID, err)
	}
	return nil
}

// Unposted is the state of the outbox.
type Unposted struct {
	Endings int
	Oldest  time.Time // when the oldest of them ended; zero if all are posted
}

// lookedAt is how many endings Backlog reads: those that are due first.
const lookedAt = 1000

// Backlog reads the state of the outbox in two round trips. Oldest considers only the first 1,000.
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
