package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Outbox holds the ended tasks whose final message is not posted yet.
type Outbox struct {
	*conn
	retention time.Duration // of a task once it is posted
}

// Post is a lease on an ended task whose final message is due.
type Post struct {
	ID      string // the task
	Attempt int    // 1 = the first; from 2 on, an earlier attempt may have posted the message without recording it

	delivery int // the lease's token, together with Attempt: attempts start again when a task is retried
}

// Of reports whether a task's record still has the ending that is posted: a retry removes it.
func (p Post) Of(rec Record) bool { return rec.State == Ended && rec.Delivery == p.delivery }

// outboxLease is how long a poster holds an item.
const outboxLease = time.Minute

// Take leases a task whose message is due for outboxLease: the given task, or with id "" the one that has been due
// longest, of those that ended more than a day ago or whose IDs name one of the sources; without sources, of all. It
// returns false if the task has not ended, or is posted, leased or postponed. For 10 s after [Claim.End] the task must
// be requested by ID: the worker that ended it still has its report open.
func (s *Outbox) Take(ctx context.Context, id string, sources ...string) (Post, bool, error) {
	r, err := s.run(ctx, "takeoutbox", id, outboxLease.Microseconds(), rand.Text(), strings.Join(sources, " "))
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
func (s *Outbox) MarkPosted(ctx context.Context, p Post) error { return s.finish(ctx, p, "") }

// GiveUp records that the final message will not be posted, and why, as a clause. It is like MarkPosted otherwise.
func (s *Outbox) GiveUp(ctx context.Context, p Post, why string) error {
	return s.finish(ctx, p, cmp.Or(why, "it could not be posted"))
}

func (s *Outbox) finish(ctx context.Context, p Post, why string) error {
	_, err := s.run(ctx, "posted", p.ID, p.delivery, p.Attempt, s.retention.Milliseconds(), why)
	return wrapf(err, "mark %s posted", p.ID)
}

// Delay is what an attempt to post a final message came to that did not complete it.
type Delay struct {
	At    time.Time // when to try again; zero: now
	Why   string    // why it failed, as a clause; opaque
	Shown bool      // people have the answer; only its status is not up to date
}

// Postpone returns the lease and makes the message due again. It returns [ErrStale] like MarkPosted.
func (s *Outbox) Postpone(ctx context.Context, p Post, d Delay) error {
	shown := 0
	if d.Shown {
		shown = 1
	}
	wait := max(time.Until(d.At), 0).Microseconds()
	_, err := s.run(ctx, "postlater", p.ID, p.delivery, p.Attempt, wait, d.Why, shown)
	return wrapf(err, "post %s later", p.ID)
}

// Unposted is the state of the outbox.
type Unposted struct {
	Endings int       // whose answer people do not have
	Oldest  time.Time // when the oldest of them ended; zero if all are posted
	Why     string    // why the last attempt to post that one failed; see [Delay]

	// GivenUp counts the answers of the last day that will not be posted. LastGivenUp is the task of the latest.
	GivenUp     int
	LastGivenUp string
}

// lookedAt is how many endings Backlog reads: those that are due first.
const lookedAt = 1000

// Backlog reads the state of the outbox in two round trips. It considers only the first 1,000 endings.
func (s *Outbox) Backlog(ctx context.Context) (Unposted, error) {
	var count, givenUp *redis.IntCmd
	var ids, last *redis.StringSliceCmd
	since := strconv.FormatInt(time.Now().Add(-24*time.Hour).UnixMicro(), 10)
	_, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		count, ids = p.ZCard(ctx, s.key("outbox")), p.ZRange(ctx, s.key("outbox"), 0, lookedAt-1)
		givenUp = p.ZCount(ctx, s.key("undelivered"), since, "+inf")
		last = p.ZRange(ctx, s.key("undelivered"), -1, -1)
		return nil
	})
	if err != nil {
		return Unposted{}, fmt.Errorf("look at the outbox: %w", err)
	}
	u := Unposted{Endings: int(count.Val()), GivenUp: int(givenUp.Val())}
	if u.GivenUp > 0 && len(last.Val()) > 0 {
		u.LastGivenUp = last.Val()[0]
	}
	if len(ids.Val()) == 0 {
		return u, nil
	}
	ended, err := each(ctx, s.conn, ids.Val(), func(p redis.Pipeliner, id string) *redis.SliceCmd {
		return p.HMGet(ctx, s.key("task", id), "ended", "shown", "unposted")
	})
	if err != nil {
		return Unposted{}, fmt.Errorf("look at the outbox: %w", err)
	}
	for _, e := range ended {
		fields := reply(e.Val())
		if fields.text(1) != "" {
			u.Endings--
			continue
		}
		at := fromMicros(fields.text(0))
		if !at.IsZero() && (u.Oldest.IsZero() || at.Before(u.Oldest)) {
			u.Oldest, u.Why = at, fields.text(2)
		}
	}
	return u, nil
}
