package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Get reads one record. It returns [ErrNotFound] if the record does not exist or has expired. An unreadable record has
// Unreadable set.
func (s *Store) Get(ctx context.Context, id string) (Record, error) { return s.get(ctx, id) }

// LiveRecord is a task that waits or runs, with the fields that the reconciler needs.
type LiveRecord struct {
	Record           // without Task, Ending and other fields that the reconciler does not need
	Claimed   bool   // its thread's claim exists and is this record's latest
	Tell      string // as in its last [Wait]
	Explained string // key of the last [Store.Explain]; empty if it was never explained
	Lent      bool   // it waits for a person and does not count under its caps ([Claim.Lend])
}

// Live reads all tasks that wait or run, oldest first, in three round trips. The result is not a snapshot: a record
// may change between the round trips, so [Store.Requeue] checks it again.
func (s *Store) Live(ctx context.Context) ([]LiveRecord, error) {
	return s.listed(ctx, s.key("live"), 0)
}

// Unblocked reads at most n of the tasks that wait and are not blocked, in the same way.
func (s *Store) Unblocked(ctx context.Context, n int64) ([]LiveRecord, error) {
	return s.listed(ctx, s.key("ready"), n)
}

// Running reads only the running tasks, in the same way.
func (s *Store) Running(ctx context.Context) ([]LiveRecord, error) {
	return s.listed(ctx, s.key("running"), 0)
}

// BoundClaims makes claims that would live for longer than ClaimTTL, because Redis' clock went back, expire then.
func (s *Store) BoundClaims(ctx context.Context, live []LiveRecord) error {
	var left []*redis.DurationCmd
	err := s.pipelined(ctx, func(p redis.Pipeliner) error {
		for _, r := range live {
			left = append(left, p.PTTL(ctx, s.key("claim", r.Thread)))
		}
		return nil
	})
	for i, r := range live {
		if err == nil && left[i].Val() > s.cfg.ClaimTTL {
			err = s.redis.PExpire(ctx, s.key("claim", r.Thread), s.cfg.ClaimTTL).Err()
		}
	}
	return wrapf(err, "read live claims")
}

// LiveAfter reads the next n tasks that wait or run, including unreadable and missing ones, oldest first, starting
// after an ID ("" for the first). next is the ID to continue with, or "" if these were the last.
func (s *Store) LiveAfter(ctx context.Context, after string, n int) (live []LiveRecord, next string, err error) {
	first := "-"
	if after != "" {
		first = "(" + after
	}
	ids, err := s.redis.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: s.key("live"), Start: first, Stop: "+", ByLex: true, Count: int64(n),
	}).Result()
	if err != nil {
		return nil, "", fmt.Errorf("read live tasks: %w", err)
	}
	if len(ids) == n {
		next = ids[n-1]
	}
	live, err = s.live(ctx, ids)
	return live, next, err
}

// liveFields are the fields that a reconciler reads. A whole record may be large.
var liveFields = []string{
	"thread", "class", "pool", "state", "delivery", "at", "attempt", "crashes", "fence", "created",
	"started", "retried", "cancel_by", "cancel_cause", "scopes", "blocked", "lent", "worker", "explained",
	"tell",
}

// listed returns the tasks in a sorted set that wait or run and can be read, in the order of their IDs: of its first n
// members, or of all if n is 0.
func (s *Store) listed(ctx context.Context, key string, n int64) ([]LiveRecord, error) {
	ids, err := s.redis.ZRange(ctx, key, 0, n-1).Result()
	if err != nil {
		return nil, fmt.Errorf("read live tasks: %w", err)
	}
	slices.Sort(ids)
	live, err := s.live(ctx, ids)
	return slices.DeleteFunc(live, func(r LiveRecord) bool { return r.Unreadable != "" }), err
}

// live returns those of the given tasks that wait or run, or cannot be read.
func (s *Store) live(ctx context.Context, ids []string) ([]LiveRecord, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	replies, err := each(ctx, s.conn, ids, func(p redis.Pipeliner, id string) *redis.SliceCmd {
		return p.HMGet(ctx, s.key("task", id), liveFields...)
	})
	if err != nil {
		return nil, fmt.Errorf("read live tasks: %w", err)
	}
	var live []LiveRecord
	var claims []string
	for i, id := range ids {
		values, got := reply(replies[i].Val()), map[string]string{}
		for j, name := range liveFields {
			got[name] = values.text(j)
		}
		if r := decode(id, got); r.State == Waiting || r.State == Running || r.Unreadable != "" {
			live = append(live, LiveRecord{
				Record: r, Lent: got["lent"] != "", Explained: got["explained"], Tell: got["tell"],
			})
			claims = append(claims, s.key("claim", r.Thread))
		}
	}
	if len(live) == 0 {
		return nil, nil
	}
	tokens, err := s.redis.MGet(ctx, claims...).Result()
	if err != nil {
		return nil, fmt.Errorf("read live claims: %w", err)
	}
	for i := range live {
		ours := strconv.FormatInt(live[i].Fence, 10) + " " + live[i].ID + " "
		live[i].Claimed = strings.HasPrefix(reply(tokens).text(i), ours)
	}
	return live, nil
}

// Places returns for each record the place of its task in the line that it waits in: for a limit from 1, and otherwise
// how many tasks of its thread come first, a running one included. It is 0 for a task that waits in none.
func (s *Store) Places(ctx context.Context, records []Record) ([]int, error) {
	places, lines := make([]int, len(records)), make([]*redis.IntCmd, len(records))
	threads := make([]*redis.IntCmd, len(records))
	_, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, r := range records {
			if r.State != Waiting || r.Unreadable != "" {
				continue
			}
			if r.Blocked.Scope == "" {
				threads[i] = p.ZRank(ctx, s.key("waiting", r.Thread), r.ID)
			} else {
				lines[i] = p.ZRank(ctx, s.key("line", r.Blocked.Scope), r.ID)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // a task that has just started is in no line
		return nil, fmt.Errorf("look up places in line: %w", err)
	}
	for i := range records {
		if threads[i] != nil {
			places[i] = int(threads[i].Val())
		}
		if lines[i] != nil && lines[i].Err() == nil {
			places[i] = int(lines[i].Val()) + 1
		}
	}
	return places, nil
}

// Records reads some records. It leaves out those that do not exist. An unreadable record has Unreadable set.
func (s *Store) Records(ctx context.Context, ids []string) ([]Record, error) {
	records, err := s.records(ctx, ids)
	return records, wrapf(err, "read %s", strings.Join(ids, ", "))
}
