package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Topic reads what the latest task of a thread left for its next one; see [Record]. It outlives the tasks themselves and is gone with the
// thread's session: [ErrNotFound] then, and in a thread that never had a task.
func (s *Threads) Topic(ctx context.Context, thread string) (json.RawMessage, error) {
	topic, err := s.redis.Get(ctx, s.key.topic(thread)).Result()
	switch {
	case wrongType(err):
		return nil, fmt.Errorf("read topic of %s: %w", thread, ErrDamaged)
	case errors.Is(err, redis.Nil):
		return nil, fmt.Errorf("read topic of %s: %w", thread, ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("read topic of %s: %w", thread, err)
	}
	return raw(topic), nil
}

// OpenTasks reads the tasks of a thread that wait or run, in the order in which they start. Those that are in the run of another are not among
// them.
func (s *Threads) OpenTasks(ctx context.Context, thread string) ([]Record, error) {
	ids, err := s.redis.ZRange(ctx, s.key.waiting(thread), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read open tasks of %s: %w", thread, err)
	}
	records, err := s.records(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read open tasks of %s: %w", thread, err)
	}
	return records, nil
}

// LatestTasks reads the newest tasks of a thread that left a topic, at most n, oldest first. They may be in any state, also in the run of another;
// those that have expired are left out.
func (s *Threads) LatestTasks(ctx context.Context, thread string, n int) ([]Record, error) {
	ids, err := s.redis.ZRange(ctx, s.key.thread(thread), int64(-n), -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read latest tasks of %s: %w", thread, err)
	}
	records, err := s.records(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read latest tasks of %s: %w", thread, err)
	}
	return records, nil
}
