package store

import (
	"context"
	"encoding/json"
	"fmt"
)

// maxSession bounds a session's data, in bytes.
const maxSession = 8 << 20

// Session is what a later run of the thread needs in order to go on where this one stopped.
type Session struct {
	ID   string          // the CLI's session
	Meta json.RawMessage // what its owner remembers of it, opaque, some 100 KiB at most
	Data []byte          // what the CLI saved, opaque
}

// SaveSession replaces the thread's session. [ErrTooLarge] when it exceeds 8 MiB, [ErrStale] when the thread is not ours.
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

// Session reads the thread's latest session; [ErrNotFound] when there is none, or no more, [ErrDamaged] when it is
// something else.
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
