package store

import (
	"context"
	"crypto/rand"
	"strings"
	"time"
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

// Move describes how a task changes its pool. Last and Next are the queue's IDs of its present delivery and of the
// next.
type Move struct {
	Pool       string
	Last, Next string
	Message    []byte    // of the next delivery
	At         time.Time // when that is due; zero = at once
}

// Move gives a waiting task to another pool: the next delivery, in the queue of its class there, becomes the valid one.
// rec is the record that the caller saw. Move returns [ErrStale] if the task no longer waits for the same delivery.
func (s *Pools) Move(ctx context.Context, rec Record, to Move) error {
	_, err := s.run(ctx, "move", rec.ID, rec.Delivery, to.Pool, to.Last, to.Next, to.Message,
		micros(to.At), rand.Text())
	return wrapf(err, "move %s", rec.ID)
}
