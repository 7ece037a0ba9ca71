package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// maxPictures bounds the pictures of one task, in bytes.
const maxPictures = 8 << 20

// Save stores what was sent along with a task, before the task itself is submitted. It may be repeated, and changes nothing once the task
// is there: then they are as well, for as long as it is. The data lives for SessionTTL, and for Retention from the moment in which the task's
// final message is posted. [ErrTooLarge] beyond 8 MiB in all.
func (s *Pictures) Save(ctx context.Context, id string, data [][]byte) error {
	size, fields := 0, make([]any, 0, 2*len(data))
	for i, d := range data {
		size += len(d)
		fields = append(fields, strconv.Itoa(i), d)
	}
	if size > maxPictures {
		return fmt.Errorf("save pictures of %s: %d bytes, limit %d: %w", id, size, maxPictures, ErrTooLarge)
	}
	if n, err := s.redis.Exists(ctx, s.key.task(id)).Result(); err != nil {
		return fmt.Errorf("save pictures of %s: %w", id, err)
	} else if n > 0 {
		return nil
	}
	_, err := s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, s.key.pictures(id), fields...)
		p.PExpire(ctx, s.key.pictures(id), s.cfg.SessionTTL)
		return nil
	})
	if err != nil {
		return fmt.Errorf("save pictures of %s: %w", id, err)
	}
	return nil
}

// Drop removes what SavePictures stored for a task that was not taken. It changes nothing if there is such a task after all.
func (s *Pictures) Drop(ctx context.Context, id string) error {
	if _, err := s.run(ctx, "droppictures", id); err != nil {
		return fmt.Errorf("drop pictures of %s: %w", id, err)
	}
	return nil
}

// Read reads what SavePictures stored, in the same order; nothing if it is gone.
func (s *Pictures) Read(ctx context.Context, id string) ([][]byte, error) {
	fields, err := s.redis.HGetAll(ctx, s.key.pictures(id)).Result()
	if err != nil {
		return nil, fmt.Errorf("read pictures of %s: %w", id, err)
	}
	var data [][]byte
	for i := range len(fields) {
		data = append(data, []byte(fields[strconv.Itoa(i)]))
	}
	return data, nil
}
