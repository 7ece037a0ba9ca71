package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// ThreadLock locks an idle thread, for example to remove its directories. New tasks of the thread find it busy until
// the lock is released or expires.
type ThreadLock struct {
	conn   *conn
	thread string
	token  string
}

// Lock locks an idle thread for at most ttl. It returns [ErrBusy] if one of its tasks waits or runs, or the thread is
// locked already.
func (s *Threads) Lock(ctx context.Context, thread string, ttl time.Duration) (*ThreadLock, error) {
	l := &ThreadLock{conn: s.conn, thread: thread, token: fmt.Sprintf("lock %s %d", rand.Text(), ttl.Milliseconds())}
	if _, err := s.run(ctx, "lockthread", thread, l.token, ttl.Milliseconds()); err != nil {
		return nil, fmt.Errorf("lock %s: %w", thread, err)
	}
	return l, nil
}

// Release releases the lock. It returns [ErrStale] if the lock has expired.
func (l *ThreadLock) Release(ctx context.Context) error {
	_, err := l.conn.run(ctx, "unlockthread", l.thread, l.token)
	return wrapf(err, "release %s", l.thread)
}
