package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Logins holds the logins of browsers and what they have to prove. Keys have hashes only.
type Logins struct{ *conn }

// Save stores who a browser is, under a hash of its session's ID, for a while.
func (s *Logins) Save(ctx context.Context, hash string, body json.RawMessage, ttl time.Duration) error {
	return wrapf(s.redis.Set(ctx, s.key("login", hash), []byte(body), ttl).Err(), "save login")
}

// Read reads what Save stored. It returns [ErrNotFound] after its time or Drop.
func (s *Logins) Read(ctx context.Context, hash string) (json.RawMessage, error) {
	body, err := s.redis.Get(ctx, s.key("login", hash)).Result()
	switch {
	case errors.Is(err, redis.Nil), wrongType(err):
		return nil, fmt.Errorf("read login: %w", ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("read login: %w", err)
	}
	return raw(body), nil
}

// Drop ends a login.
func (s *Logins) Drop(ctx context.Context, hash string) error {
	return wrapf(s.redis.Del(ctx, s.key("login", hash)).Err(), "drop login")
}

// Take reads what Save stored and ends it, for one caller only. It returns [ErrNotFound] if there is nothing.
func (s *Logins) Take(ctx context.Context, hash string) (json.RawMessage, error) {
	body, err := s.redis.GetDel(ctx, s.key("login", hash)).Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return raw(body), wrapf(err, "take login")
}

// Once reports whether it is called for the first time with a hash, within a while.
func (s *Logins) Once(ctx context.Context, hash string, ttl time.Duration) (bool, error) {
	first, err := s.redis.SetNX(ctx, s.key("login", hash), "used", ttl).Result()
	return first, wrapf(err, "use a login's state")
}
