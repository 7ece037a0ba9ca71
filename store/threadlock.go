package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// ThreadLock is the right to touch what belongs to a thread of which no task waits or runs, such as its directories. Until it is released,
// or its time is over, a task that comes waits: it finds the thread busy.
type ThreadLock struct {
	db     *db
	thread string
	token  string
}

// Lock takes an idle thread for at most ttl. [ErrBusy] when one of its tasks waits or runs, or somebody else has it.
func (s *Threads) Lock(ctx context.Context, thread string, ttl time.Duration) (*ThreadLock, error) {
	l := &ThreadLock{db: s.db, thread: thread, token: "lock " + rand.Text()}
	if _, err := s.run(ctx, "lockthread", thread, l.token, ttl.Milliseconds()); err != nil {
		return nil, fmt.Errorf("lock %s: %w", thread, err)
	}
	return l, nil
}

// Release lets the thread's tasks start. [ErrStale] when the time was over already.
func (l *ThreadLock) Release(ctx context.Context) error {
	if _, err := l.db.run(ctx, "unlockthread", l.thread, l.token); err != nil {
		return fmt.Errorf("release %s: %w", l.thread, err)
	}
	return nil
}
