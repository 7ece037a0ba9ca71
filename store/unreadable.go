package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// maxUnreadable is the number of unreadable records that Diagnose reports.
const maxUnreadable = 20

// SetAside removes a task from the live tasks if its record is gone or so damaged that no step can use it. Its thread
// continues without it. SetAside returns [ErrStale] if the record is still usable.
func (s *Store) SetAside(ctx context.Context, id string) error {
	_, err := s.run(ctx, "setaside", id)
	return wrapf(err, "set aside %s", id)
}

// NoteUnreadable makes Diagnose report unreadable records, by ID with the reason, until they are gone or Retention is
// over.
func (s *Doctor) NoteUnreadable(ctx context.Context, why map[string]string) error {
	if len(why) == 0 {
		return nil
	}
	_, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, s.key.unreadable(), why)
		p.PExpire(ctx, s.key.unreadable(), s.retention)
		return nil
	})
	return wrapf(err, "note unreadable records")
}

// unreadable returns findings for the noted records that still exist.
func (s *Doctor) unreadable(ctx context.Context) (found []Finding, err error) {
	why, err := s.redis.HGetAll(ctx, s.key.unreadable()).Result()
	if err != nil {
		return nil, fmt.Errorf("read unreadable records: %w", err)
	}
	if len(why) == 0 {
		return nil, nil
	}
	there := map[string]*redis.IntCmd{}
	if _, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for id := range why {
			there[id] = p.Exists(ctx, s.key.task(id))
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read unreadable records: %w", err)
	}
	var gone []string
	for _, id := range slices.Sorted(maps.Keys(why)) {
		switch {
		case there[id].Val() == 0:
			gone = append(gone, id)
		case len(found) < maxUnreadable:
			found = append(found, Finding{
				Warning, "unreadable record " + id + ": " + why[id],
				"The task is passed over: it does not run, and its thread goes on without it.",
				"Run the same version of errand everywhere, or remove it with redis-cli DEL " + s.key.task(id),
			})
		}
	}
	if len(gone) > 0 {
		s.redis.HDel(ctx, s.key.unreadable(), gone...)
	}
	return found, nil
}
