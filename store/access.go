package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// TakeLogin reads what SaveLogin stored and ends it, for one caller only. It returns [ErrNotFound] if there is nothing.
func (s *Access) TakeLogin(ctx context.Context, hash string) (json.RawMessage, error) {
	body, err := s.redis.GetDel(ctx, s.key.login(hash)).Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return raw(body), wrapf(err, "take login")
}

// Once reports whether it is called for the first time with a hash, within a while.
func (s *Access) Once(ctx context.Context, hash string, ttl time.Duration) (bool, error) {
	first, err := s.redis.SetNX(ctx, s.key.login(hash), "used", ttl).Result()
	return first, wrapf(err, "use a login's state")
}

// The lists whose entries stay until they are removed.
const (
	APITokens = "tokens" // what API tokens may do, by their hashes
	Links     = "links"  // the accounts on the forge that people have linked, by their account in Slack
)

// Save stores an entry of a list.
func (s *Access) Save(ctx context.Context, list string, name string, body json.RawMessage) error {
	return wrapf(s.redis.HSet(ctx, s.key.list(list), name, []byte(body)).Err(), "save entry of %s", list)
}

// SaveLink stores a link of a user, whose body has the keys login and until, the latter in UTC. It returns [ErrStale]
// if another user's link with the login counts.
func (s *Access) SaveLink(ctx context.Context, user, login string, body json.RawMessage) error {
	_, err := s.run(ctx, "savelink", s.key.list(Links), user, []byte(body), strings.ToLower(login),
		time.Now().UTC().Format("2006-01-02T15:04:05"))
	return wrapf(err, "save link of %s", user)
}

// Read reads what Save stored, or returns [ErrNotFound].
func (s *Access) Read(ctx context.Context, list string, name string) (json.RawMessage, error) {
	body, err := s.redis.HGet(ctx, s.key.list(list), name).Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return raw(body), wrapf(err, "read entry of %s", list)
}

// List returns all entries of a list by their names.
func (s *Access) List(ctx context.Context, list string) (map[string]string, error) {
	all, err := s.redis.HGetAll(ctx, s.key.list(list)).Result()
	return all, wrapf(err, "list %s", list)
}

// Remove removes an entry of a list. It reports whether the entry existed.
func (s *Access) Remove(ctx context.Context, list string, name string) (bool, error) {
	n, err := s.redis.HDel(ctx, s.key.list(list), name).Result()
	return n > 0, wrapf(err, "remove entry of %s", list)
}
