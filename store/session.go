package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

const (
	maxSession = 8 << 20 // bytes as stored
	minGzip    = 1 << 10 // below this compression does not pay
)

// Session is what a later run of the thread needs in order to go on where this one stopped.
type Session struct {
	ID   string          // the CLI's session
	Meta json.RawMessage // what its owner remembers of it, opaque, a few hundred bytes
	Data []byte          // the session file, opaque
}

// SaveSession replaces the thread's session. [ErrTooLarge] when it exceeds 8 MiB compressed, [ErrStale] when the thread is not ours.
func (c *Claim) SaveSession(ctx context.Context, ses Session) error {
	encoding, data := pack(ses.Data)
	if limit := c.store.sessionLimit; len(data) > limit {
		return fmt.Errorf("save session of %s: %d bytes compressed, limit %d: %w", c.Thread(), len(data), limit, ErrTooLarge)
	}
	_, err := c.store.run(ctx, "savesession", c.ID(), c.Thread(), c.fence, c.token, c.store.cfg.SessionTTL.Milliseconds(),
		ses.ID, string(ses.Meta), encoding, data)
	if err != nil {
		return fmt.Errorf("save session of %s: %w", c.Thread(), err)
	}
	return nil
}

// Session reads the thread's latest session; [ErrNotFound] when there is none, or no more.
func (s *Store) Session(ctx context.Context, thread string) (Session, error) {
	f, err := s.redis.HGetAll(ctx, s.key.session(thread)).Result()
	if err != nil {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, err)
	}
	if len(f) == 0 {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, ErrNotFound)
	}
	data, err := unpack(f["encoding"], f["data"])
	if err != nil {
		return Session{}, fmt.Errorf("unpack session of %s: %w", thread, err)
	}
	return Session{ID: f["id"], Meta: raw(f["meta"]), Data: data}, nil
}

// pack compresses where it pays. Sessions are JSON lines: usually to a fifth.
func pack(data []byte) (encoding string, packed []byte) {
	if len(data) < minGzip {
		return "", data
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data) // a bytes.Buffer takes everything
	_ = z.Close()
	if b.Len() >= len(data) {
		return "", data
	}
	return "gzip", b.Bytes()
}

func unpack(encoding, data string) ([]byte, error) {
	if encoding == "" {
		return []byte(data), nil
	}
	z, err := gzip.NewReader(bytes.NewReader([]byte(data)))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
