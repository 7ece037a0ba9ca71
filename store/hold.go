package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// Hold is the right to touch what belongs to a thread of which no task waits or runs, such as its directories. Until it is released, or
// its time is over, a task that comes waits: it finds the thread busy.
type Hold struct {
	store  *Store
	thread string
	token  string
}

// Hold takes an idle thread for at most ttl. [ErrBusy] when one of its tasks waits or runs, or somebody else has it.
func (s *Store) Hold(ctx context.Context, thread string, ttl time.Duration) (*Hold, error) {
	h := &Hold{store: s, thread: thread, token: "hold " + rand.Text()}
	if _, err := s.run(ctx, "hold", thread, h.token, ttl.Milliseconds()); err != nil {
		return nil, fmt.Errorf("hold %s: %w", thread, err)
	}
	return h, nil
}

// Release lets the thread's tasks start. [ErrStale] when the time was over already.
func (h *Hold) Release(ctx context.Context) error {
	if _, err := h.store.run(ctx, "unhold", h.thread, h.token); err != nil {
		return fmt.Errorf("release %s: %w", h.thread, err)
	}
	return nil
}
