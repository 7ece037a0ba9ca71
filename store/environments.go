package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// MaxEnvironments bounds the environments in a heartbeat.
const MaxEnvironments = 100

// Environment is what a worker reports about an environment on its machine.
type Environment struct {
	ID      string    `json:"id"`
	Repo    string    `json:"repo"`
	Created time.Time `json:"made"`
	Used    time.Time `json:"used"` // by the start of a run
	Seconds float64   `json:"set_up_seconds"`
	Size    int64     `json:"bytes"`
	From    string    `json:"from,omitempty"` // what declared the set-up; empty: an earlier release set it up
}

// Rebuild says that the runs of a repository do not use environments from before At, and who wanted that. The zero value says
// nothing.
type Rebuild struct {
	Repo string    `json:"repo"`
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
}

// Name returns the ID of an environment that is set up after the rebuild. key identifies what it contains.
func (r Rebuild) Name(key string) string { return key + r.suffix() }

// Outdated reports whether an environment of the repository was set up before the rebuild, by its ID: clocks may differ.
func (r Rebuild) Outdated(id string) bool { return !strings.HasSuffix(id, r.suffix()) }

func (r Rebuild) suffix() string {
	if r.At.IsZero() {
		return ""
	}
	return "-" + strconv.FormatInt(r.At.UnixMicro(), 10)
}

// Rebuild makes the next run of a repository set up a new environment on every worker.
func (s *Environments) Rebuild(ctx context.Context, r Rebuild) error {
	value := strconv.FormatInt(r.At.UnixMicro(), 10) + " " + strings.TrimSpace(r.By)
	err := s.redis.HSet(ctx, s.rebuilds(), strings.ToLower(r.Repo), value).Err()
	return wrapf(err, "rebuild the environment of %s", r.Repo)
}

// Rebuilt returns the last rebuild of a repository.
func (s *Environments) Rebuilt(ctx context.Context, repo string) (Rebuild, error) {
	value, err := s.redis.HGet(ctx, s.rebuilds(), strings.ToLower(repo)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Rebuild{}, fmt.Errorf("read the rebuild of %s: %w", repo, err)
	}
	return rebuild(repo, value), nil
}

// Rebuilds returns the last rebuild of each repository, by its name in lower case.
func (s *Environments) Rebuilds(ctx context.Context) (map[string]Rebuild, error) {
	fields, err := s.redis.HGetAll(ctx, s.rebuilds()).Result()
	if err != nil {
		return nil, fmt.Errorf("read rebuilds: %w", err)
	}
	all := map[string]Rebuild{}
	for repo, value := range fields {
		all[repo] = rebuild(repo, value)
	}
	return all, nil
}

// rebuilds is the key of the rebuilds.
func (s *db) rebuilds() string { return s.key.prefix + "rebuilds" }

// rebuild decodes "<unix microseconds> <who>".
func rebuild(repo, value string) Rebuild {
	at, by, _ := strings.Cut(value, " ")
	micros, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return Rebuild{}
	}
	return Rebuild{Repo: repo, By: by, At: time.UnixMicro(micros).UTC()}
}
