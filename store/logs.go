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
	logParts = 4       // kept of one log: a task may be handed from worker to worker many times
)

// LogPart is a run's part of a log.
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

// Log reads the stored parts of one of a task's logs in the order of its runs. It returns [ErrNotFound] if there is none.
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
