package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// SaveLogin stores who a browser is, under a hash of its session's ID, for a while.
func (s *Access) SaveLogin(ctx context.Context, hash string, body json.RawMessage, ttl time.Duration) error {
	return wrapf(s.redis.Set(ctx, s.key.login(hash), []byte(body), ttl).Err(), "save login")
}

// Login reads what SaveLogin stored. It returns [ErrNotFound] after its time or DropLogin.
func (s *Access) Login(ctx context.Context, hash string) (json.RawMessage, error) {
	body, err := s.redis.Get(ctx, s.key.login(hash)).Result()
	switch {
	case errors.Is(err, redis.Nil), wrongType(err):
		return nil, fmt.Errorf("read login: %w", ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("read login: %w", err)
	}
	return raw(body), nil
}

// DropLogin ends a login.
func (s *Access) DropLogin(ctx context.Context, hash string) error {
	return wrapf(s.redis.Del(ctx, s.key.login(hash)).Err(), "drop login")
}

// Once reports whether it is called for the first time with a hash, within a while.
func (s *Access) Once(ctx context.Context, hash string, ttl time.Duration) (bool, error) {
	first, err := s.redis.SetNX(ctx, s.key.login(hash), "used", ttl).Result()
	return first, wrapf(err, "use a login's state")
}

// SaveToken stores what an API token may do, under the token's hash.
func (s *Access) SaveToken(ctx context.Context, hash string, body json.RawMessage) error {
	return wrapf(s.redis.HSet(ctx, s.key.list("tokens"), hash, []byte(body)).Err(), "save token")
}

// Token reads what SaveToken stored, or returns [ErrNotFound].
func (s *Access) Token(ctx context.Context, hash string) (json.RawMessage, error) {
	body, err := s.redis.HGet(ctx, s.key.list("tokens"), hash).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, fmt.Errorf("read token: %w", ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("read token: %w", err)
	}
	return raw(body), nil
}

// Tokens returns all API tokens by their hashes.
func (s *Access) Tokens(ctx context.Context) (map[string]string, error) {
	all, err := s.redis.HGetAll(ctx, s.key.list("tokens")).Result()
	return all, wrapf(err, "list tokens")
}

// DropToken revokes a token. It reports whether the token existed.
func (s *Access) DropToken(ctx context.Context, hash string) (bool, error) {
	n, err := s.redis.HDel(ctx, s.key.list("tokens"), hash).Result()
	return n > 0, wrapf(err, "drop token")
}
