package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Pictures holds the pictures that came with tasks.
type Pictures struct {
	*conn
	values *values
	life   time.Duration // of pictures whose task never ends
}

// maxPictures bounds the pictures of one task, in bytes.
const maxPictures = 8 << 20

// Save stores the pictures of a task before the task is submitted. It can be repeated, and changes nothing once the
// task or its pictures exist. The pictures live for SessionTTL, and for Retention after the task's final message is
// posted. Save returns [ErrTooLarge] beyond 8 MiB in all.
func (s *Pictures) Save(ctx context.Context, id string, data [][]byte) error {
	size, fields := 0, make([]any, 0, 2*len(data))
	for _, d := range data {
		size += len(d)
	}
	if size > maxPictures {
		return fmt.Errorf("save pictures of %s: %d bytes, limit %d: %w", id, size, maxPictures, ErrTooLarge)
	}
	if n, err := s.redis.Exists(ctx, s.key.task(id), s.key.pictures(id)).Result(); err != nil {
		return fmt.Errorf("save pictures of %s: %w", id, err)
	} else if n > 0 {
		return nil
	}
	for i, d := range data {
		value, err := s.values.keep(ctx, picture, id, d)
		if err != nil {
			return fmt.Errorf("save pictures of %s: %w", id, err)
		}
		fields = append(fields, strconv.Itoa(i), value)
	}
	_, err := s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, s.key.pictures(id), fields...)
		p.PExpire(ctx, s.key.pictures(id), s.life)
		return nil
	})
	return wrapf(err, "save pictures of %s", id)
}

// Drop removes what Save stored for a task that was not accepted. It changes nothing if the task exists.
func (s *Pictures) Drop(ctx context.Context, id string) error {
	r, err := s.run(ctx, "droppictures", id)
	if err != nil {
		return fmt.Errorf("drop pictures of %s: %w", id, err)
	}
	for i := range r[1:] {
		s.values.discard(ctx, r.text(i+1))
	}
	return nil
}

// Read returns what Save stored, in the same order, or nothing if it has expired.
func (s *Pictures) Read(ctx context.Context, id string) ([][]byte, error) {
	fields, err := s.redis.HGetAll(ctx, s.key.pictures(id)).Result()
	if err != nil {
		return nil, fmt.Errorf("read pictures of %s: %w", id, err)
	}
	var data [][]byte
	for i := range len(fields) {
		picture, err := s.values.fetch(ctx, fields[strconv.Itoa(i)])
		if err != nil {
			return nil, fmt.Errorf("read pictures of %s: %w", id, err)
		}
		data = append(data, picture)
	}
	return data, nil
}
