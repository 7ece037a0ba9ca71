package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

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
	body, err := c.store.values.keep(ctx, session, c.Thread(), ses.Data)
	if err != nil {
		return fmt.Errorf("save session of %s: %w", c.Thread(), err)
	}
	r, err := c.run(ctx, "savesession", c.ID(), c.Thread(), c.fence, c.token, c.store.cfg.SessionTTL.Milliseconds(),
		ses.ID, string(ses.Meta), body)
	if err != nil {
		c.store.values.discardUnused(ctx, body, err)
		return fmt.Errorf("save session of %s: %w", c.Thread(), err)
	}
	c.store.values.replace(ctx, r.text(1))
	return nil
}

// Session reads the thread's latest session. It returns [ErrNotFound] if the thread has no session or it has expired,
// and [ErrDamaged] if it differs from what was saved.
func (s *Threads) Session(ctx context.Context, thread string) (Session, error) {
	f, err := s.redis.HGetAll(ctx, s.key("session", thread)).Result()
	if wrongType(err) {
		err = ErrDamaged
	}
	if err != nil {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, err)
	}
	if len(f) == 0 {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, ErrNotFound)
	}
	data, err := s.values.fetch(ctx, f["data"])
	if err != nil {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, err)
	}
	return Session{ID: f["id"], Meta: raw(f["meta"]), Data: data}, nil
}

// SessionMeta reads only the notes about the thread's latest session. It returns [ErrNotFound] like Session.
func (s *Threads) SessionMeta(ctx context.Context, thread string) (json.RawMessage, error) {
	meta, err := s.redis.HGet(ctx, s.key("session", thread), "meta").Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return raw(meta), wrapf(err, "read session of %s", thread)
}
