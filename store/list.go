package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Counts is the number of tasks in each state but the last.
type Counts struct{ Waiting, Running, Absorbed int }

// Counts counts the tasks that have not ended, in one round trip, however many there are.
func (s *Store) Counts(ctx context.Context) (Counts, error) {
	var live, running, joined *redis.IntCmd
	_, err := s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		live, running = p.ZCard(ctx, s.key("live")), p.ZCard(ctx, s.key("running"))
		joined = p.SCard(ctx, s.key("joined"))
		return nil
	})
	if err != nil {
		return Counts{}, fmt.Errorf("count tasks: %w", err)
	}
	c := Counts{Running: int(running.Val()), Absorbed: int(joined.Val())}
	c.Waiting = max(int(live.Val())-c.Running-c.Absorbed, 0)
	return c, nil
}

// glance is how many IDs a filtered listing reads per round trip.
const glance = 500

// ListQuery selects what to list. The zero value means the newest tasks in any state.
type ListQuery struct {
	State  State     // empty = any
	Limit  int       // 0 = 50
	Before string    // an ID: only older tasks, for the next page; the task itself may have expired
	Since  time.Time // only tasks whose IDs are not older; zero = all

	// ID, Head and Match filter; nil accepts all. Head sees only ID, Class, Pool, State and Scopes, so that the rest of
	// a dropped record is never read. Match sees the whole record.
	ID          func(string) bool
	Head, Match func(Record) bool
	Look        int // stop after about this many tasks, give or take a few hundred; 0 = never
}

// Page is a part of a listing, newest first.
type Page struct {
	Records []Record
	// Next is the Before of the following page; empty on the last page. If there are fewer records than Limit, the
	// listing stopped looking here.
	Next string
}

// List reads records, newest first by ID. The result is not a snapshot: a task that changes state meanwhile may be
// missing.
func (s *Store) List(ctx context.Context, q ListQuery) (Page, error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}
	step := glance
	if q.all() {
		step = q.Limit
	}
	var found []Record
	for looked := 0; ; {
		ids, err := s.older(ctx, q, step)
		if err != nil {
			return Page{}, fmt.Errorf("list tasks: %w", err)
		}
		found, err = s.choose(ctx, q, ids, found)
		if err != nil {
			return Page{}, fmt.Errorf("list tasks: %w", err)
		}
		if len(found) == q.Limit {
			return Page{found, found[q.Limit-1].ID}, nil
		}
		if len(ids) < step {
			return Page{Records: found}, nil
		}
		q.Before = ids[len(ids)-1]
		if looked += len(ids); q.Look > 0 && looked >= q.Look {
			return Page{found, q.Before}, nil
		}
	}
}

// all reports whether the query accepts every ID of the index.
func (q ListQuery) all() bool {
	return q.State == "" && q.ID == nil && q.Head == nil && q.Match == nil
}

// wants reports whether the query accepts the head of a record. A record without a state cannot be read. It is listed
// with those that wait until it is set aside, and with the ended ones then.
func (q ListQuery) wants(r Record) bool {
	unreadable := r.State == "" && (q.State == Waiting || q.State == Ended)
	return (q.State == "" || q.State == r.State || unreadable) && (q.Head == nil || q.Head(r))
}

// older reads the next IDs, newest first.
func (s *Store) older(ctx context.Context, q ListQuery, n int) ([]string, error) {
	index, last, first := s.key("tasks"), "+", "-"
	if q.State != "" && q.State != Ended {
		index = s.key("live")
	}
	if q.Before != "" {
		last = "(" + q.Before
	}
	if !q.Since.IsZero() {
		first = fmt.Sprintf("[%016d", q.Since.UnixMicro())
	}
	// With REV the greater bound comes first; go-redis passes both bounds through unchanged.
	return s.redis.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: index, Start: last, Stop: first, ByLex: true, Rev: true, Count: int64(n),
	}).Result()
}

// choose appends the matching records until the page is full.
func (s *Store) choose(ctx context.Context, q ListQuery, ids []string, found []Record) ([]Record, error) {
	ids, err := s.heads(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	// Records may be large, so read at most a page of them at once.
	for some := range slices.Chunk(ids, q.Limit) {
		records, err := s.records(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if q.wants(r) && (q.Match == nil || q.Match(r)) {
				if found = append(found, r); len(found) == q.Limit {
					return found, nil
				}
			}
		}
	}
	return found, nil
}

// heads drops the IDs of records whose heads do not match.
func (s *Store) heads(ctx context.Context, q ListQuery, ids []string) ([]string, error) {
	if q.ID != nil {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !q.ID(id) })
	}
	if len(ids) == 0 || q.State == "" && q.Head == nil {
		return ids, nil
	}
	ids, err := s.withoutLive(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	heads, err := s.readHeads(ctx, ids)
	var wanted []string
	for _, r := range heads {
		if q.wants(r) {
			wanted = append(wanted, r.ID)
		}
	}
	return wanted, err
}

// withoutLive drops the tasks that wait or run from a listing of ended ones. That is faster than to read their records,
// which may be thousands after a time without workers.
func (s *Store) withoutLive(ctx context.Context, q ListQuery, ids []string) ([]string, error) {
	if q.State != Ended || len(ids) == 0 {
		return ids, nil
	}
	args := []any{"ZMSCORE", s.key("live")} // the client's ZMScore does not tell 0 from none
	for _, id := range ids {
		args = append(args, id)
	}
	scores, err := s.redis.Do(ctx, args...).Slice()
	if err != nil {
		return nil, err
	}
	ended := make([]string, 0, len(ids))
	for i, id := range ids {
		if scores[i] == nil {
			ended = append(ended, id)
		}
	}
	return ended, nil
}

// readHeads reads what [ListQuery.Head] sees, and leaves out expired records.
func (s *Store) readHeads(ctx context.Context, ids []string) ([]Record, error) {
	replies, err := each(ctx, s.conn, ids, func(p redis.Pipeliner, id string) *redis.SliceCmd {
		return p.HMGet(ctx, s.key("task", id), "state", "class", "scopes", "pool")
	})
	if err != nil {
		return nil, err
	}
	var heads []Record
	for i, id := range ids {
		f := reply(replies[i].Val())
		r := Record{ID: id, State: State(f.text(0)), Class: f.text(1), Scopes: lines(f.text(2)), Pool: f.text(3)}
		if r.State != "" || wrongType(replies[i].Err()) {
			heads = append(heads, r)
		}
	}
	return heads, nil
}
