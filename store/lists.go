package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// List holds entries by name until they are removed.
type List struct {
	*conn
	name string // of its key
}

// Links is the list of the accounts on the forge that people have linked, by their account in Slack.
type Links struct{ List }

// Save stores an entry of a list.
func (s *List) Save(ctx context.Context, name string, body json.RawMessage) error {
	return wrapf(s.redis.HSet(ctx, s.key.list(s.name), name, []byte(body)).Err(), "save entry of %s", s.name)
}

// Link stores a link of a user, whose body has the keys login and until, the latter in UTC. It returns [ErrStale]
// if another user's link with the login counts.
func (s *Links) Link(ctx context.Context, user, login string, body json.RawMessage) error {
	_, err := s.run(ctx, "savelink", s.key.list(s.name), user, []byte(body), strings.ToLower(login),
		time.Now().UTC().Format("2006-01-02T15:04:05"))
	return wrapf(err, "save link of %s", user)
}

// Read reads an entry, or returns [ErrNotFound].
func (s *List) Read(ctx context.Context, name string) (json.RawMessage, error) {
	body, err := s.redis.HGet(ctx, s.key.list(s.name), name).Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return raw(body), wrapf(err, "read entry of %s", s.name)
}

// All returns all entries of a list by their names.
func (s *List) All(ctx context.Context) (map[string]string, error) {
	all, err := s.redis.HGetAll(ctx, s.key.list(s.name)).Result()
	return all, wrapf(err, "list %s", s.name)
}

// Remove removes an entry of a list. It reports whether the entry existed.
func (s *List) Remove(ctx context.Context, name string) (bool, error) {
	n, err := s.redis.HDel(ctx, s.key.list(s.name), name).Result()
	return n > 0, wrapf(err, "remove entry of %s", s.name)
}
