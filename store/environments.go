package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Environments holds which environments have to be replaced.
type Environments struct{ *conn }

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

// Rebuild says that the runs of a repository do not use environments from before At, and who wanted that. The zero
// value says nothing.
type Rebuild struct {
	Repo string    `json:"repo"`
	Key  string    `json:"key,omitempty"` // of the only environment that is meant; empty: all of the repository
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

// field is the field of a rebuild in the hash of rebuilds: keys have no slash.
func (r Rebuild) field() string { return cmp.Or(r.Key, strings.ToLower(r.Repo)) }

// Rebuild makes the next run that would use what r names set up a new environment, on every worker.
func (s *Environments) Rebuild(ctx context.Context, r Rebuild) error {
	value := strconv.FormatInt(r.At.UnixMicro(), 10) + " " + strings.TrimSpace(r.By)
	err := s.redis.HSet(ctx, s.key.rebuilds(), r.field(), value).Err()
	return wrapf(err, "rebuild the environment of %s", r.Repo)
}

// Rebuilds are the last rebuilds of repositories and of single environments.
type Rebuilds map[string]Rebuild

// Of returns the last rebuild of an environment of a repository, by its key or ID.
func (all Rebuilds) Of(repo, id string) Rebuild {
	key, _, _ := strings.Cut(id, "-")
	whole, one := all[Rebuild{Repo: repo}.field()], all[key]
	if one.At.After(whole.At) {
		return Rebuild{Repo: repo, Key: key, By: one.By, At: one.At}
	}
	return whole
}

// Rebuilds returns the last rebuilds.
func (s *Environments) Rebuilds(ctx context.Context) (Rebuilds, error) {
	fields, err := s.redis.HGetAll(ctx, s.key.rebuilds()).Result()
	if err != nil {
		return nil, fmt.Errorf("read rebuilds: %w", err)
	}
	all := Rebuilds{}
	for field, value := range fields {
		all[field] = rebuild(field, value)
	}
	return all, nil
}

// RebuildOf returns the last rebuild of an environment of a repository, by its key.
func (s *Environments) RebuildOf(ctx context.Context, repo, key string) (Rebuild, error) {
	fields := []string{Rebuild{Repo: repo}.field(), Rebuild{Key: key}.field()}
	values, err := s.redis.HMGet(ctx, s.key.rebuilds(), fields...).Result()
	if err != nil {
		return Rebuild{}, fmt.Errorf("read the rebuilds of %s: %w", repo, err)
	}
	found := Rebuilds{}
	for i, value := range values {
		if text, ok := value.(string); ok {
			found[fields[i]] = rebuild(fields[i], text)
		}
	}
	return found.Of(repo, key), nil
}

// rebuilds is the key of the rebuilds.

// rebuild decodes "<unix microseconds> <who>".
func rebuild(repo, value string) Rebuild {
	at, by, _ := strings.Cut(value, " ")
	micros, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return Rebuild{}
	}
	return Rebuild{Repo: repo, By: by, At: time.UnixMicro(micros).UTC()}
}
