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

// List holds entries of one type by name until they are removed, as JSON. An entry that cannot be read is there, with
// its zero value.
type List[T any] struct {
	*conn
	name string // of its key
}

// cordoned is the name of the list of cordons, which heartbeats read as well.
const cordoned = "cordoned"

// Halt says since when a class is paused or a worker is cordoned, and who did it. Runs continue. The cordon of a host
// is for all workers there, also for those that start later. Workers look at each heartbeat. The cordon of one worker
// ends an hour after its death.
type Halt struct {
	By    string    `json:"by,omitempty"` // empty if unknown
	Since time.Time `json:"since"`
}

// Links is the list of the accounts on the forge that people have linked, by their account in Slack.
type Links struct{ List[json.RawMessage] }

// Save stores an entry of a list.
func (s *List[T]) Save(ctx context.Context, name string, entry T) error {
	body, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("marshal entry of %s: %w", s.name, err)
	}
	return wrapf(s.redis.HSet(ctx, s.key(s.name), name, body).Err(), "save entry of %s", s.name)
}

// Add is Save for a name that has no entry. An existing entry stays.
func (s *List[T]) Add(ctx context.Context, name string, entry T) error {
	body, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("marshal entry of %s: %w", s.name, err)
	}
	return wrapf(s.redis.HSetNX(ctx, s.key(s.name), name, body).Err(), "add entry of %s", s.name)
}

// Link stores a link of a user, whose body has the keys login and until, the latter in UTC. It returns [ErrStale]
// if another user's link with the login counts.
func (s *Links) Link(ctx context.Context, user, login string, body json.RawMessage) error {
	_, err := s.run(ctx, "savelink", s.key(s.name), user, []byte(body), strings.ToLower(login),
		time.Now().UTC().Format("2006-01-02T15:04:05"))
	return wrapf(err, "save link of %s", user)
}

// Read reads an entry, or returns [ErrNotFound].
func (s *List[T]) Read(ctx context.Context, name string) (T, error) {
	body, err := s.redis.HGet(ctx, s.key(s.name), name).Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return readEntry[T](body), wrapf(err, "read entry of %s", s.name)
}

// All returns all entries of a list by their names.
func (s *List[T]) All(ctx context.Context) (map[string]T, error) {
	bodies, err := s.redis.HGetAll(ctx, s.key(s.name)).Result()
	all := make(map[string]T, len(bodies))
	for name, body := range bodies {
		all[name] = readEntry[T](body)
	}
	return all, wrapf(err, "list %s", s.name)
}

func readEntry[T any](body string) (one T) {
	if json.Unmarshal([]byte(body), &one) != nil {
		return *new(T)
	}
	return one
}

// Remove removes an entry of a list. It reports whether the entry existed.
func (s *List[T]) Remove(ctx context.Context, name string) (bool, error) {
	n, err := s.redis.HDel(ctx, s.key(s.name), name).Result()
	return n > 0, wrapf(err, "remove entry of %s", s.name)
}
