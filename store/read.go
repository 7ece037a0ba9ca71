package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Get reads one record; [ErrNotFound] when there is none, or no more.
func (s *Store) Get(ctx context.Context, id string) (Record, error) {
	fields, err := s.redis.HGetAll(ctx, s.key.task(id)).Result()
	if err != nil {
		return Record{}, fmt.Errorf("get %s: %w", id, err)
	}
	if len(fields) == 0 {
		return Record{}, fmt.Errorf("get %s: %w", id, ErrNotFound)
	}
	return decode(id, fields), nil
}

// LiveRecord is a task that waits or runs, as the reconciler looks at it.
type LiveRecord struct {
	Record       // with what a reconciler decides on, not with Task, Ending and the like
	Claimed bool // its thread's claim exists and is this record's latest
}

// Live reads all tasks that wait or run, oldest first, in three round trips. It is no snapshot: a record may have moved between them,
// so [Store.Requeue] checks again what was seen here.
func (s *Store) Live(ctx context.Context) ([]LiveRecord, error) {
	ids, err := s.redis.ZRange(ctx, s.key.live(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read live tasks: %w", err)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	// Tasks may be large, and a reconciler looks often: only these fields.
	fields := []string{
		"thread", "class", "state", "delivery", "at", "attempt", "crashes", "fence", "created", "started", "retried",
		"cancel_by", "cancel_cause",
	}
	replies := make([]*redis.SliceCmd, len(ids))
	_, err = s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			replies[i] = p.HMGet(ctx, s.key.task(id), fields...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read live tasks: %w", err)
	}
	var live []LiveRecord
	var claims []string
	for i, id := range ids {
		values, got := reply(replies[i].Val()), map[string]string{}
		for j, name := range fields {
			got[name] = values.text(j)
		}
		// A missing record stays in the index: to remove it here could remove one that is being submitted at this moment.
		if r := decode(id, got); r.State == Waiting || r.State == Running {
			live = append(live, LiveRecord{Record: r})
			claims = append(claims, s.key.claim(r.Thread))
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

// Position tells how many tasks of its thread start before this one: 0 = the next, perhaps behind one that runs. A task that does not
// wait has no position: [ErrRunning], [ErrEnded].
func (s *Store) Position(ctx context.Context, id string) (int, error) {
	r, err := s.run(ctx, "position", id)
	if err != nil {
		return 0, fmt.Errorf("look up the position of %s: %w", id, err)
	}
	return r.number(1), nil
}

// Counts is how many tasks there are in each state but the last.
type Counts struct{ Waiting, Running, Absorbed int }

// Counts counts the tasks that have not ended, in one round trip, however many there are.
func (s *Store) Counts(ctx context.Context) (Counts, error) {
	var live, running, joined *redis.IntCmd
	_, err := s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		live, running, joined = p.ZCard(ctx, s.key.live()), p.SCard(ctx, s.key.running()), p.SCard(ctx, s.key.joined())
		return nil
	})
	if err != nil {
		return Counts{}, fmt.Errorf("count tasks: %w", err)
	}
	c := Counts{Running: int(running.Val()), Absorbed: int(joined.Val())}
	c.Waiting = max(int(live.Val())-c.Running-c.Absorbed, 0)
	return c, nil
}
