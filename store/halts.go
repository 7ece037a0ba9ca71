package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Halts holds which classes are paused and which workers are cordoned.
type Halts struct{ *conn }

// Halt says since when a class is paused or a worker is cordoned, and who did it.
type Halt struct {
	By    string    `json:"by,omitempty"` // empty if unknown
	Since time.Time `json:"since"`
}

// Pause records that workers take no deliveries of a class until [Halts.Resume]. A class that is paused already stays
// paused by the person who did it first.
func (s *Halts) Pause(ctx context.Context, class, by string) error {
	_, err := s.run(ctx, "halt", s.key.paused(), class, strings.TrimSpace(by))
	return wrapf(err, "pause %s", class)
}

// Resume undoes [Halts.Pause].
func (s *Halts) Resume(ctx context.Context, class string) error {
	return wrapf(s.redis.HDel(ctx, s.key.paused(), class).Err(), "resume %s", class)
}

// Paused returns which classes are paused.
func (s *Halts) Paused(ctx context.Context) (map[string]Halt, error) {
	return s.halted(ctx, s.key.paused())
}

// Cordon makes a worker take no deliveries until [Halts.Uncordon]. Its runs continue. name is the ID of one worker, or
// a host: then it is for all workers there, also for those that start later. A name that is cordoned already stays so
// by the person who did it first. Workers look at each heartbeat. The cordon of one worker ends an hour after its
// death.
func (s *Halts) Cordon(ctx context.Context, name, by string) error {
	_, err := s.run(ctx, "halt", s.key.cordoned(), name, strings.TrimSpace(by))
	return wrapf(err, "cordon %s", name)
}

// Uncordon undoes [Halts.Cordon]. It returns false if the name is not cordoned.
func (s *Halts) Uncordon(ctx context.Context, name string) (bool, error) {
	n, err := s.redis.HDel(ctx, s.key.cordoned(), name).Result()
	return n > 0, wrapf(err, "uncordon %s", name)
}

// Cordoned returns what is cordoned, by ID or host.
func (s *Halts) Cordoned(ctx context.Context) (map[string]Halt, error) {
	return s.halted(ctx, s.key.cordoned())
}

func (s *Halts) halted(ctx context.Context, key string) (map[string]Halt, error) {
	fields, err := s.redis.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	halted := map[string]Halt{}
	for name, value := range fields {
		halted[name] = halt(value)
	}
	return halted, nil
}

// halt decodes "<unix seconds> <who>".
func halt(value string) Halt {
	since, by, _ := strings.Cut(value, " ")
	seconds, _ := strconv.ParseInt(since, 10, 64)
	return Halt{By: by, Since: time.Unix(seconds, 0).UTC()}
}
