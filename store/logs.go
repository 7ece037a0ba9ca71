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
	maxLog   = 8 << 20 // bytes of a part
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
// beyond 8 MiB and [ErrNotFound] if the task is gone.
func (c *Claim) SaveLog(ctx context.Context, name string, data []byte) error {
	return c.saveLog(ctx, name, data, logParts)
}

// SaveLatest is SaveLog for a log of which only the latest part is kept, and which a run may save repeatedly.
func (c *Claim) SaveLatest(ctx context.Context, name string, data []byte) error {
	return c.saveLog(ctx, name, data, 1)
}

func (c *Claim) saveLog(ctx context.Context, name string, data []byte, parts int) error {
	if len(data) > maxLog {
		return fmt.Errorf("save log of %s: %d bytes, limit %d: %w", c.ID(), len(data), maxLog, ErrTooLarge)
	}
	value, err := c.store.values.keep(ctx, log, c.ID(), data)
	if err != nil {
		return fmt.Errorf("save log of %s: %w", c.ID(), err)
	}
	r, err := c.store.run(ctx, "savelog", c.ID(), c.fence, name, value, parts, c.store.cfg.Retention.Milliseconds())
	if err != nil {
		c.store.values.discardUnused(ctx, value, err)
		return fmt.Errorf("save log of %s: %w", c.ID(), err)
	}
	for i := range r[1:] {
		c.store.values.replace(ctx, r.text(i+1))
	}
	return nil
}

// Logs returns the names of a task's stored logs that begin with a prefix, without it, sorted.
func (s *Store) Logs(ctx context.Context, id, prefix string) ([]string, error) {
	fields, err := s.redis.HKeys(ctx, s.key("log", id)).Result()
	if err != nil {
		return nil, fmt.Errorf("list logs of %s: %w", id, err)
	}
	var names []string
	for _, field := range fields {
		_, name, _ := strings.Cut(field, " ")
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Log reads the stored parts of one of a task's logs in the order of its runs. It returns [ErrNotFound] if no part is
// stored.
func (s *Store) Log(ctx context.Context, id, name string) ([]LogPart, error) {
	fields, err := s.redis.HKeys(ctx, s.key("log", id)).Result()
	if err != nil {
		return nil, fmt.Errorf("read log of %s: %w", id, err)
	}
	var parts []LogPart
	for _, field := range fields {
		fence, of, _ := strings.Cut(field, " ")
		if of != name {
			continue
		}
		value, err := s.redis.HGet(ctx, s.key("log", id), field).Result()
		if errors.Is(err, redis.Nil) { // a later run's part replaced it
			continue
		}
		var data []byte
		if err == nil {
			data, err = s.values.fetch(ctx, value)
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
