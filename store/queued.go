package store

import (
	"context"
	"fmt"
)

// Queued reads the tasks of a thread that wait or run, in the order in which they do. It is no snapshot: a task that starts or ends
// meanwhile may be missing.
func (s *Store) Queued(ctx context.Context, thread string) ([]Record, error) {
	ids, err := s.redis.ZRange(ctx, s.key.waiting(thread), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read tasks of %s: %w", thread, err)
	}
	records, err := s.records(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read tasks of %s: %w", thread, err)
	}
	return records, nil
}
