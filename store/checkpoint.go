package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// MaxCheckpoint bounds the session's data and the work of a checkpoint, together, in bytes.
const MaxCheckpoint = 8 << 20

// Checkpoint is the state from which an unfinished task can resume. Session and work are saved, read and replaced
// together.
type Checkpoint struct {
	Session Session
	Work    []byte    // opaque
	Holds   []string  // IDs of absorbed tasks that are in the session: they stay with the waiting task; not read back
	At      time.Time // when it was saved, by Redis' clock; ignored by SaveCheckpoint
}

// SaveCheckpoint replaces the running task's only checkpoint. The checkpoint is deleted when the task ends and expires
// after SessionTTL. SaveCheckpoint returns [ErrTooLarge] beyond MaxCheckpoint, and [ErrStale] if the claim is lost or
// the task has ended.
func (c *Claim) SaveCheckpoint(ctx context.Context, p Checkpoint) error {
	if n := len(p.Session.Data) + len(p.Work); n > MaxCheckpoint {
		return fmt.Errorf("save checkpoint of %s: %d bytes, limit %d: %w", c.ID(), n, MaxCheckpoint, ErrTooLarge)
	}
	body, err := c.store.values.keep(ctx, checkpoint, c.ID(),
		join([]byte(p.Session.ID), p.Session.Meta, p.Session.Data, p.Work))
	if err != nil {
		return fmt.Errorf("save checkpoint of %s: %w", c.ID(), err)
	}
	r, err := c.run(ctx, "savecheckpoint", c.ID(), c.fence, c.store.cfg.SessionTTL.Milliseconds(), body,
		strings.Join(p.Holds, " "))
	if err != nil {
		c.store.values.discardUnused(ctx, body, err)
		return fmt.Errorf("save checkpoint of %s: %w", c.ID(), err)
	}
	c.store.values.replace(ctx, r.text(1))
	return nil
}

// Checkpoint reads a task's checkpoint. It returns [ErrNotFound] if the task has no checkpoint, [ErrDamaged] if it
// differs from what was saved or is on another machine, and [ErrObjects].
func (s *Store) Checkpoint(ctx context.Context, id string) (Checkpoint, error) {
	c, err := s.readCheckpoint(ctx, id)
	return c, wrapf(err, "read checkpoint of %s", id)
}

func (s *Store) readCheckpoint(ctx context.Context, id string) (Checkpoint, error) {
	f, err := s.redis.HGetAll(ctx, s.key("checkpoint", id)).Result()
	if err == nil && len(f) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Checkpoint{}, err
	}
	body, err := s.values.fetch(ctx, f["body"])
	if err != nil {
		return Checkpoint{}, err
	}
	parts, err := split(body)
	if err == nil && len(parts) != 4 {
		err = ErrDamaged
	}
	if err != nil {
		return Checkpoint{}, err
	}
	return Checkpoint{
		Session: Session{ID: string(parts[0]), Meta: raw(string(parts[1])), Data: parts[2]}, Work: parts[3],
		At: fromMicros(f["at"]),
	}, nil
}
