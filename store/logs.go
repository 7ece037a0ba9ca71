package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	maxLog   = 5 << 20 // bytes of a part
	logParts = 4       // kept per log: a task may move between workers many times
)

// LogPart is the part of a log that one run wrote.
type LogPart struct {
	Fence int64  // of the run's claim: later runs have greater ones
	Data  []byte // opaque
}

// SaveLog stores what this claim's run wrote to one of the task's logs, by a name such as "log". Unlike the other
// steps of a holder it also works after the task has ended or was taken over, because it only replaces its own part.
// The part lives for Retention, like the record. Each log keeps its latest 4 parts. SaveLog returns [ErrTooLarge]
// beyond 5 MiB and [ErrNotFound] if the task is gone.
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

// Log reads the stored parts of one of a task's logs in the order of its runs. It returns [ErrNotFound] if no part is
// stored.
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
		if errors.Is(err, redis.Nil) { // a later run's part replaced it
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

// maxPictures bounds the pictures of one task, in bytes.
const maxPictures = 8 << 20

// Save stores the pictures of a task before the task is submitted. It can be repeated, and changes nothing once the
// task exists. The pictures live for SessionTTL, and for Retention after the task's final message is posted. Save
// returns [ErrTooLarge] beyond 8 MiB in all.
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

// Drop removes what Save stored for a task that was not accepted. It changes nothing if the task exists.
func (s *Pictures) Drop(ctx context.Context, id string) error {
	if _, err := s.run(ctx, "droppictures", id); err != nil {
		return fmt.Errorf("drop pictures of %s: %w", id, err)
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
		data = append(data, []byte(fields[strconv.Itoa(i)]))
	}
	return data, nil
}
