package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// glance is how many IDs a listing that chooses looks at in one round trip.
const glance = 500

// ListQuery says what to list. The zero value is the newest tasks in any state.
type ListQuery struct {
	State  State  // empty = any
	Limit  int    // 0 = 50
	Before string // an ID: only older ones, for the next page; it need not exist any more

	// Head and Match choose; nil = all. Head decides by ID, Class, State and Scopes, the only fields that it is given, so that the rest of
	// what it drops is never read. Match decides by the whole record.
	Head, Match func(Record) bool
	Look        int // after how many tasks to stop looking, give or take a few hundred; 0 = never
}

// Page is a part of a listing, newest first.
type Page struct {
	Records []Record
	// Next is Before of the page that follows; empty = there is none. With fewer records than Limit, it is where the listing stopped looking.
	Next string
}

// List reads records, newest first by ID. It is no snapshot: a task that changes state meanwhile may be missing.
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

// all reports whether every ID of the index is wanted.
func (q ListQuery) all() bool { return q.State == "" && q.Head == nil && q.Match == nil }

// wants is what can be said by the head of a record.
func (q ListQuery) wants(r Record) bool {
	return (q.State == "" || q.State == r.State) && (q.Head == nil || q.Head(r))
}

// older reads the next IDs, newest first.
func (s *Store) older(ctx context.Context, q ListQuery, n int) ([]string, error) {
	index, last := s.key.tasks(), "+"
	if q.State != "" && q.State != Ended {
		index = s.key.live()
	}
	if q.Before != "" {
		last = "(" + q.Before
	}
	// With REV the greater bound comes first: go-redis passes both on as they are.
	return s.redis.ZRangeArgs(ctx, redis.ZRangeArgs{Key: index, Start: last, Stop: "-", ByLex: true, Rev: true, Count: int64(n)}).Result()
}

// choose adds the records that are wanted, until there are enough.
func (s *Store) choose(ctx context.Context, q ListQuery, ids []string, found []Record) ([]Record, error) {
	ids, err := s.heads(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	// Records may be large: no more of them at once than a page has.
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

// heads drops the IDs of records that are not wanted, as far as their heads tell.
func (s *Store) heads(ctx context.Context, q ListQuery, ids []string) ([]string, error) {
	if len(ids) == 0 || q.State == "" && q.Head == nil {
		return ids, nil
	}
	replies := make([]*redis.SliceCmd, len(ids))
	err := s.pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			replies[i] = p.HMGet(ctx, s.key.task(id), "state", "class", "scopes")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var wanted []string
	for i, id := range ids {
		f := reply(replies[i].Val())
		r := Record{ID: id, State: State(f.text(0)), Class: f.text(1), Scopes: lines(f.text(2))}
		if (r.State != "" || wrongType(replies[i].Err())) && q.wants(r) {
			wanted = append(wanted, id)
		}
	}
	return wanted, nil
}

// records reads many in one round trip and leaves out those that have expired. One that cannot be read says so.
func (s *db) records(ctx context.Context, ids []string) ([]Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	replies := make([]*redis.MapStringStringCmd, len(ids))
	err := s.pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			replies[i] = p.HGetAll(ctx, s.key.task(id))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var records []Record
	for i, id := range ids {
		if fields := replies[i].Val(); len(fields) > 0 {
			records = append(records, decode(id, fields))
		} else if wrongType(replies[i].Err()) {
			records = append(records, noHash(id))
		}
	}
	return records, nil
}
