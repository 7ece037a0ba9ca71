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

// Halt says since when a class is paused or a worker is cordoned, and who did it.
type Halt struct {
	By    string    `json:"by,omitempty"` // empty if unknown: asynq's own tools pause without a name
	Since time.Time `json:"since"`
}

// Pause makes every worker of every pool take no deliveries of a class until [Halts.Resume]. Runs continue. A class
// that is paused already stays paused by the person who did it first. asynq and its tools use the same key, with only
// the time in it.
func (s *Halts) Pause(ctx context.Context, class, by string) error {
	_, err := s.run(ctx, "pause", class, strings.TrimSpace(by))
	return wrapf(err, "pause %s", class)
}

// Resume ends a pause in all pools, and announces the class to idle workers.
func (s *Halts) Resume(ctx context.Context, class string) error {
	_, err := s.run(ctx, "resume", class)
	return wrapf(err, "resume %s", class)
}

// Paused returns which of the queues are paused. A class names its queue in the default pool.
func (s *Halts) Paused(ctx context.Context, queues ...string) (map[string]Halt, error) {
	values := make([]*redis.StringCmd, len(queues))
	_, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, queue := range queues {
			values[i] = p.Get(ctx, "asynq:{"+queue+"}:paused")
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read which queues are paused: %w", err)
	}
	paused := map[string]Halt{}
	for i, queue := range queues {
		if value, err := values[i].Result(); err == nil {
			paused[queue] = halt(value)
		}
	}
	return paused, nil
}

// Cordon makes a worker take no deliveries until [Halts.Uncordon]. Its runs continue. name is the ID of one worker, or
// a host: then it is for all workers there, also for those that start later. A name that is cordoned already stays so
// by the person who did it first. Workers look at each heartbeat. The cordon of one worker ends an hour after its
// death.
func (s *Halts) Cordon(ctx context.Context, name, by string) error {
	_, err := s.run(ctx, "cordon", name, strings.TrimSpace(by))
	return wrapf(err, "cordon %s", name)
}

// Uncordon undoes [Halts.Cordon]. It returns false if the name is not cordoned.
func (s *Halts) Uncordon(ctx context.Context, name string) (bool, error) {
	n, err := s.redis.HDel(ctx, s.cordoned(), name).Result()
	return n > 0, wrapf(err, "uncordon %s", name)
}

// Cordoned returns what is cordoned, by ID or host.
func (s *Halts) Cordoned(ctx context.Context) (map[string]Halt, error) {
	fields, err := s.redis.HGetAll(ctx, s.cordoned()).Result()
	if err != nil {
		return nil, fmt.Errorf("read which workers are cordoned: %w", err)
	}
	cordoned := map[string]Halt{}
	for name, value := range fields {
		cordoned[name] = halt(value)
	}
	return cordoned, nil
}

// cordoned is the key of the cordons.
func (s *db) cordoned() string { return s.key.prefix + "cordoned" }

// halt decodes "<unix seconds> <who>".
func halt(value string) Halt {
	since, by, _ := strings.Cut(value, " ")
	seconds, _ := strconv.ParseInt(since, 10, 64)
	return Halt{By: by, Since: time.Unix(seconds, 0).UTC()}
}
