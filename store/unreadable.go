package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// A record may be unreadable because another version or a mistake wrote it. It must not affect other tasks: a step
// that reads many records skips it and reports its ID and the reason.

// wrongType reports whether a command failed because the key has another type.
func wrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }

// pipelined is Redis' Pipelined for reads that may each fail with wrongType.
func (s *db) pipelined(ctx context.Context, fn func(redis.Pipeliner) error) error {
	cmds, err := s.redis.Pipelined(ctx, fn)
	if !wrongType(err) {
		return err
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !wrongType(err) {
			return err
		}
	}
	return nil
}

// flaw returns why the fields of a record cannot be read, or "" if they can.
func flaw(f map[string]string) string {
	switch state := State(f["state"]); {
	case state == "":
		return "it has no state"
	case f["thread"] == "":
		return "it has no thread"
	case !slices.Contains([]State{Waiting, Running, Absorbed, Ended}, state):
		return fmt.Sprintf("its state is %.40q, which this version does not know", state)
	}
	return ""
}

// noHash returns an unreadable record for a key that is not a hash.
func noHash(id string) Record { return Record{ID: id, Unreadable: "it is no hash"} }

// SetAside removes a task from the live tasks if its record is gone or so damaged that no step can use it. Its thread
// continues without it. SetAside returns [ErrStale] if the record is still usable.
func (s *Store) SetAside(ctx context.Context, id string) error {
	if _, err := s.run(ctx, "setaside", id); err != nil {
		return fmt.Errorf("set aside %s: %w", id, err)
	}
	return nil
}

// maxUnreadable is the number of unreadable records that Diagnose reports.
const maxUnreadable = 20

// NoteUnreadable makes Diagnose report unreadable records, by ID with the reason, until they are gone or Retention is
// over.
func (s *Doctor) NoteUnreadable(ctx context.Context, why map[string]string) error {
	if len(why) == 0 {
		return nil
	}
	_, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, s.key.unreadable(), why)
		p.PExpire(ctx, s.key.unreadable(), s.cfg.Retention)
		return nil
	})
	if err != nil {
		return fmt.Errorf("note unreadable records: %w", err)
	}
	return nil
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
				Warning, "unreadable record " + id + ": " + why[id], "The task is passed over: it does not run, and its thread goes on without it.",
				"Run the same version of errand everywhere, or remove it with redis-cli DEL " + s.key.task(id),
			})
		}
	}
	if len(gone) > 0 {
		s.redis.HDel(ctx, s.key.unreadable(), gone...)
	}
	return found, nil
}
