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
	if err := s.redis.Set(ctx, s.key.login(hash), []byte(body), ttl).Err(); err != nil {
		return fmt.Errorf("save login: %w", err)
	}
	return nil
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
	if err := s.redis.Del(ctx, s.key.login(hash)).Err(); err != nil {
		return fmt.Errorf("drop login: %w", err)
	}
	return nil
}

// Once reports whether it is called for the first time with a hash, within a while.
func (s *Access) Once(ctx context.Context, hash string, ttl time.Duration) (bool, error) {
	first, err := s.redis.SetNX(ctx, s.key.login(hash), "used", ttl).Result()
	if err != nil {
		return false, fmt.Errorf("use a login's state: %w", err)
	}
	return first, nil
}

// SaveToken stores what an API token may do, under the token's hash.
func (s *Access) SaveToken(ctx context.Context, hash string, body json.RawMessage) error {
	if err := s.redis.HSet(ctx, s.key.tokens(), hash, []byte(body)).Err(); err != nil {
		return fmt.Errorf("save token: %w", err)
	}
	return nil
}

// Token reads what SaveToken stored, or returns [ErrNotFound].
func (s *Access) Token(ctx context.Context, hash string) (json.RawMessage, error) {
	body, err := s.redis.HGet(ctx, s.key.tokens(), hash).Result()
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
	all, err := s.redis.HGetAll(ctx, s.key.tokens()).Result()
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return all, nil
}

// DropToken revokes a token. It reports whether the token existed.
func (s *Access) DropToken(ctx context.Context, hash string) (bool, error) {
	n, err := s.redis.HDel(ctx, s.key.tokens(), hash).Result()
	if err != nil {
		return false, fmt.Errorf("drop token: %w", err)
	}
	return n > 0, nil
}
