package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
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
	meta := string(p.Session.Meta)
	_, err := c.run(ctx, "savecheckpoint", c.ID(), c.fence, c.store.cfg.SessionTTL.Milliseconds(),
		p.Session.ID, meta, p.Session.Data, p.Work, digest(p.Session.ID, meta, string(p.Session.Data), string(p.Work)),
		strings.Join(p.Holds, " "))
	if err != nil {
		return fmt.Errorf("save checkpoint of %s: %w", c.ID(), err)
	}
	return nil
}

// Checkpoint reads a task's checkpoint. It returns [ErrNotFound] if the task has no checkpoint and [ErrDamaged] if it
// differs from what was saved.
func (s *Store) Checkpoint(ctx context.Context, id string) (Checkpoint, error) {
	f, err := s.redis.HGetAll(ctx, s.key.checkpoint(id)).Result()
	switch {
	case err != nil:
	case len(f) == 0:
		err = ErrNotFound
	case f["sum"] != digest(f["id"], f["meta"], f["data"], f["work"]):
		err = ErrDamaged
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint of %s: %w", id, err)
	}
	return Checkpoint{
		Session: Session{ID: f["id"], Meta: raw(f["meta"]), Data: []byte(f["data"])}, Work: []byte(f["work"]), At: fromMicros(f["at"]),
	}, nil
}

// digest returns the SHA-256, in hex, of the parts and their lengths.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.BigEndian, int64(len(p))) // a hash never fails
		_, _ = h.Write([]byte(p))
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// maxSession bounds a session's data, in bytes.
const maxSession = 8 << 20

// Session is what a later run of the thread needs to resume the conversation.
type Session struct {
	ID   string          // the CLI's session ID
	Meta json.RawMessage // the owner's notes about the session; opaque, at most about 100 KiB
	Data []byte          // the CLI's saved state; opaque
}

// SaveSession replaces the thread's session. It returns [ErrTooLarge] beyond 8 MiB and [ErrStale] if the claim is
// lost.
func (c *Claim) SaveSession(ctx context.Context, ses Session) error {
	if n := len(ses.Data); n > maxSession {
		return fmt.Errorf("save session of %s: %d bytes, limit %d: %w", c.Thread(), n, maxSession, ErrTooLarge)
	}
	_, err := c.run(ctx, "savesession", c.ID(), c.Thread(), c.fence, c.token, c.store.cfg.SessionTTL.Milliseconds(),
		ses.ID, string(ses.Meta), ses.Data)
	if err != nil {
		return fmt.Errorf("save session of %s: %w", c.Thread(), err)
	}
	return nil
}

// Session reads the thread's latest session. It returns [ErrNotFound] if the thread has no session or it has expired,
// and [ErrDamaged] if it differs from what was saved.
func (s *Threads) Session(ctx context.Context, thread string) (Session, error) {
	f, err := s.redis.HGetAll(ctx, s.key.session(thread)).Result()
	if wrongType(err) {
		err = ErrDamaged
	}
	if err != nil {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, err)
	}
	if len(f) == 0 {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, ErrNotFound)
	}
	return Session{ID: f["id"], Meta: raw(f["meta"]), Data: []byte(f["data"])}, nil
}
