package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	maxLog   = 5 << 20 // bytes of a part
	logParts = 4       // kept of one log: a task may be handed from worker to worker many times
)

// LogPart is what one run of a task left of a log.
type LogPart struct {
	Fence int64  // of the run's claim: later runs have greater ones
	Data  []byte // opaque
}

// SaveLog keeps what this claim's run wrote to one of the task's logs, by a name such as "log". Unlike all else that a holder writes it is
// taken also when the task has ended or is another's by now, because it replaces nothing but itself. It lives for Retention, as the
// task's record does. Of one log the latest 4 parts are kept. [ErrTooLarge] beyond 5 MiB, [ErrNotFound] when the task is gone.
func (c *Claim) SaveLog(ctx context.Context, name string, data []byte) error {
	if len(data) > maxLog {
		return fmt.Errorf("save log of %s: %d bytes, limit %d: %w", c.ID(), len(data), maxLog, ErrTooLarge)
	}
	_, err := c.store.run(ctx, "savelog", c.ID(), c.fence, name, data, logParts, c.store.cfg.Retention.Milliseconds())
	if err != nil {
		return fmt.Errorf("save log of %s: %w", c.ID(), err)
	}
	return nil
}

// Log reads what is kept of one of a task's logs, in the order of its runs; [ErrNotFound] when there is nothing, or no more.
func (s *Store) Log(ctx context.Context, id, name string) ([]LogPart, error) {
	fields, err := s.redis.HKeys(ctx, s.key.log(id)).Result()
	if err != nil {
		return nil, fmt.Errorf("read log of %s: %w", id, err)
	}
	var parts []LogPart
	for _, field := range fields {
		fence, of, _ := strings.Cut(field, " ")
		if of != name {
			continue
		}
		data, err := s.redis.HGet(ctx, s.key.log(id), field).Bytes()
		if errors.Is(err, redis.Nil) { // a later run's part took its place
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read log of %s: %w", id, err)
		}
		parts = append(parts, LogPart{Fence: int64(number(fence)), Data: data})
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("read log of %s: %w", id, ErrNotFound)
	}
	slices.SortFunc(parts, func(a, b LogPart) int { return cmp.Compare(a.Fence, b.Fence) })
	return parts, nil
}
