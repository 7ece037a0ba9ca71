package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// What is shelved waits for a person's word for that long, and there is so much of it. Beyond that what is due first goes.
const (
	shelfLife  = 24 * time.Hour
	maxShelved = 1000
)

// shelfLease is how long whoever took something off the shelf has for it, until another may.
const shelfLease = time.Minute

// Shelve keeps what is to become a task once a person has decided something, under the task's ID. If nobody does it is due after that time;
// 0: never. fresh is false when it was there already: then it has the new body, and is due when it was. [ErrTooLarge] beyond 64 KiB.
func (s *Shelf) Shelve(ctx context.Context, id string, body json.RawMessage, after time.Duration) (fresh bool, err error) {
	if len(body) > maxShelvedBody {
		return false, fmt.Errorf("shelve %s: %d bytes, limit %d: %w", id, len(body), maxShelvedBody, ErrTooLarge)
	}
	if after <= 0 {
		after = 2 * shelfLife // it is gone by then
	}
	r, err := s.run(ctx, "shelve", id, []byte(body), after.Microseconds(), shelfLife.Milliseconds(), maxShelved)
	if err != nil {
		return false, fmt.Errorf("shelve %s: %w", id, err)
	}
	return r.text(0) == "ok", nil
}

const maxShelvedBody = 64 << 10

// Shelved reads what is shelved under an ID, nil if nothing is.
func (s *Shelf) Shelved(ctx context.Context, id string) (json.RawMessage, error) {
	body, err := s.redis.Get(ctx, s.key.shelved(id)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read shelved %s: %w", id, err)
	}
	return raw(body), nil
}

// TakeShelved leases what is due for longest, for a minute: it stays where it is until Unshelve. An empty ID: nothing is due.
func (s *Shelf) TakeShelved(ctx context.Context) (id string, body json.RawMessage, err error) {
	r, err := s.run(ctx, "takeshelved", shelfLease.Microseconds())
	if err != nil {
		return "", nil, fmt.Errorf("take what is shelved: %w", err)
	}
	return r.text(1), raw(r.text(2)), nil
}

// Unshelve removes what is shelved under an ID, if anything is.
func (s *Shelf) Unshelve(ctx context.Context, id string) error {
	_, err := s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, s.key.shelved(id))
		p.ZRem(ctx, s.key.shelf(), id)
		return nil
	})
	if err != nil {
		return fmt.Errorf("unshelve %s: %w", id, err)
	}
	return nil
}

// Prefer notes what was chosen last in a place, and Favourite tells it, empty if nothing was for SessionTTL.
func (s *Shelf) Prefer(ctx context.Context, place, what string) error {
	if err := s.redis.Set(ctx, s.key.favourite(place), what, s.cfg.SessionTTL).Err(); err != nil {
		return fmt.Errorf("note favourite of %s: %w", place, err)
	}
	return nil
}

// Favourite is what Prefer noted last.
func (s *Shelf) Favourite(ctx context.Context, place string) (string, error) {
	what, err := s.redis.Get(ctx, s.key.favourite(place)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read favourite of %s: %w", place, err)
	}
	return what, nil
}
