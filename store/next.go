package store

import (
	"context"
	"fmt"
)

// Next reads the thread's task that starts next, or is running already; [ErrNotFound] when none waits.
func (s *Threads) Next(ctx context.Context, thread string) (Record, error) {
	ids, err := s.redis.ZRange(ctx, s.key.waiting(thread), 0, 0).Result()
	if err != nil {
		return Record{}, fmt.Errorf("get next task of %s: %w", thread, err)
	}
	if len(ids) == 0 {
		return Record{}, fmt.Errorf("get next task of %s: %w", thread, ErrNotFound)
	}
	return s.get(ctx, ids[0])
}
