package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Environments holds which environments have to be replaced.
type Environments struct{ *conn }

// Rebuild says that the runs of a repository do not use environments from before At, and who wanted that. The zero
// value says nothing.
type Rebuild struct {
	Repo string    `json:"repo"`
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
}

// Name returns the ID of an environment that is set up after the rebuild. key identifies what it contains.
func (r Rebuild) Name(key string) string { return key + r.suffix() }

// Outdated reports whether an environment of the repository was set up before the rebuild, by its ID: clocks may
// differ.
func (r Rebuild) Outdated(id string) bool { return !strings.HasSuffix(id, r.suffix()) }

func (r Rebuild) suffix() string {
	if r.At.IsZero() {
		return ""
	}
	return "-" + strconv.FormatInt(r.At.UnixMicro(), 10)
}

// Rebuild makes the next run of a repository set up a new environment, on every worker.
func (s *Environments) Rebuild(ctx context.Context, r Rebuild) error {
	value := strconv.FormatInt(r.At.UnixMicro(), 10) + " " + strings.TrimSpace(r.By)
	err := s.redis.HSet(ctx, s.key.rebuilds(), strings.ToLower(r.Repo), value).Err()
	return wrapf(err, "rebuild the environment of %s", r.Repo)
}

// Sweep removes the rebuilds of single environments, which earlier releases had. Their keys have no slash.
func (s *Environments) Sweep(ctx context.Context) error {
	fields, err := s.redis.HKeys(ctx, s.key.rebuilds()).Result()
	old := slices.DeleteFunc(fields, func(f string) bool { return strings.Contains(f, "/") })
	if err == nil && len(old) > 0 {
		err = s.redis.HDel(ctx, s.key.rebuilds(), old...).Err()
	}
	return wrapf(err, "sweep rebuilds")
}

// Rebuilds are the last rebuilds of repositories.
type Rebuilds map[string]Rebuild

// Of returns the last rebuild of a repository's environments.
func (all Rebuilds) Of(repo string) Rebuild { return all[strings.ToLower(repo)] }

// Rebuilds returns the last rebuilds.
func (s *Environments) Rebuilds(ctx context.Context) (Rebuilds, error) {
	fields, err := s.redis.HGetAll(ctx, s.key.rebuilds()).Result()
	if err != nil {
		return nil, fmt.Errorf("read rebuilds: %w", err)
	}
	all := Rebuilds{}
	for repo, value := range fields {
		all[repo] = rebuild(repo, value)
	}
	return all, nil
}

// RebuildOf returns the last rebuild of a repository's environments.
func (s *Environments) RebuildOf(ctx context.Context, repo string) (Rebuild, error) {
	value, err := s.redis.HGet(ctx, s.key.rebuilds(), strings.ToLower(repo)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Rebuild{}, fmt.Errorf("read the rebuild of %s: %w", repo, err)
	}
	return rebuild(strings.ToLower(repo), value), nil
}

// rebuild decodes "<unix microseconds> <who>".
func rebuild(repo, value string) Rebuild {
	at, by, _ := strings.Cut(value, " ")
	micros, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return Rebuild{}
	}
	return Rebuild{Repo: repo, By: by, At: time.UnixMicro(micros).UTC()}
}
