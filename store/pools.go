package store

import (
	"context"
	"crypto/rand"
	"strings"
)

// QueueOf returns the name of the queue of a class in a pool; the empty name is the default pool. Its queues have the
// names that they had before there were pools.
func QueueOf(pool, class string) string {
	if pool == "" {
		return class
	}
	return pool + "." + class
}

// CutQueue is the inverse of [QueueOf].
func CutQueue(queue string) (pool, class string) {
	pool, class, found := strings.Cut(queue, ".")
	if !found {
		return "", queue
	}
	return pool, class
}

// Queue returns the name of the queue that the task belongs to.
func (r Record) Queue() string { return QueueOf(r.Pool, r.Class) }

// Move gives a waiting task to another pool. rec is the record that the caller saw: its delivery is no longer valid.
// Move returns [ErrStale] if the task no longer waits for it.
func (s *Store) Move(ctx context.Context, rec Record, pool string) error {
	_, err := s.run(ctx, "move", rec.ID, rec.Delivery, pool, rand.Text())
	return wrapf(err, "move %s", rec.ID)
}
