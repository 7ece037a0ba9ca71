package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// A record may be unreadable: written by another version, or by mistake. That is this record's trouble alone. Whoever reads many passes over it,
// and says which and why; no step waits for it.

// wrongType reports whether a key holds something else than it should.
func wrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }

// pipelined is Redis' Pipelined for readings of which each may fail by itself with wrongType.
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

// flaw is why the fields of a record cannot be read; empty when they can.
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

// noHash is the flaw of a record of which wrongType is true.
func noHash(id string) Record { return Record{ID: id, Unreadable: "it is no hash"} }

// SetAside takes a task out of those that live whose record is gone or so damaged that no step can be taken with it. Its thread goes on without
// it. [ErrStale] when it is not as bad as that.
func (s *Store) SetAside(ctx context.Context, id string) error {
	if _, err := s.run(ctx, "setaside", id); err != nil {
		return fmt.Errorf("set aside %s: %w", id, err)
	}
	return nil
}

// maxUnreadable is how many unreadable records Diagnose tells of.
const maxUnreadable = 20

// NoteUnreadable lets Diagnose tell of unreadable records, each by its ID and why it is, until they are gone or Retention is over.
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

// unreadable tells of the records that were noted and are still there.
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
