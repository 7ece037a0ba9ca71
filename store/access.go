package store

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// OpenRedis is the text of the [Finding] about a Redis without a password.
const OpenRedis = "Redis asks for no password"

// accessFresh is how long a result of access is reused. access opens connections, and every readiness probe may
// trigger it.
const accessFresh = 5 * time.Second

// Doctor examines Redis.
type Doctor struct {
	*db
	accessed *accessed
}

func newDoctor(d *db) *Doctor { return &Doctor{d, &accessed{asking: make(chan struct{}, 1)}} }

// accessed caches the last result of access. The channel acts as a lock whose wait ends with the caller's context.
type accessed struct {
	asking chan struct{} // holds one
	at     time.Time     // zero: never
	found  []Finding
}

// recentAccess runs access at most once per accessFresh and never concurrently. Otherwise it returns the last result.
func (s *Doctor) recentAccess(ctx context.Context) ([]Finding, error) {
	a := s.accessed
	select {
	case a.asking <- struct{}{}:
		defer func() { <-a.asking }()
	case <-ctx.Done():
		return nil, fmt.Errorf("diagnose redis: %w", ctx.Err())
	}
	if a.at.IsZero() || time.Since(a.at) >= accessFresh {
		found, err := s.access(ctx)
		if err != nil {
			return nil, err
		}
		a.at, a.found = time.Now(), slices.Clip(found)
	}
	return a.found, nil
}

// access reports whether anyone can use Redis, and which permissions this process lacks.
func (s *Doctor) access(ctx context.Context) (found []Finding, err error) {
	client, ok := s.redis.(*redis.Client)
	if !ok {
		return nil, nil
	}
	if isOpen(ctx, client.Options()) {
		level := Fatal
		if s.cfg.AllowOpen {
			level = Warning
		}
		found = append(found, Finding{
			level, OpenRedis, "Anyone who can connect to it controls every worker, including the tools of agents.",
			"Set requirepass in Redis' configuration and the password in REDIS_URL, or ERRAND_ALLOW_OPEN_REDIS=true.",
		})
	}
	// The keys and channels of errand and asynq, and scripts.
	for _, key := range []string{s.cfg.Prefix + "x", "asynq:x"} {
		err := s.redis.Eval(ctx, "return redis.call('EXISTS', KEYS[1])", []string{key}).Err()
		if denied(err) {
			found = append(found, refused(Fatal, "scripts on "+key[:len(key)-1]+"*", "No task can be stored or run without it.", err))
		} else if err != nil {
			return nil, fmt.Errorf("diagnose redis: %w", err)
		}
	}
	refusals, err := s.channels(ctx)
	return append(found, refusals...), err
}

// channels reports the channels that this process may not use. A script that may not publish stops half-way.
func (s *Doctor) channels(ctx context.Context) (found []Finding, err error) {
	hear := func(channel string) error {
		subscription := s.redis.Subscribe(ctx, channel)
		defer subscription.Close()
		_, err := subscription.Receive(ctx)
		return err
	}
	// The hint names no task, so no process acts on it.
	say := func(channel string) error { return s.redis.Publish(ctx, channel, "").Err() }
	const noOffer = "No front door can ask workers without it, and a chat does not know what it may offer."
	for _, use := range []struct {
		channel string
		try     func(string) error
		why     string
	}{
		{"asynq:cancel", hear, "No run can be cancelled without it."},
		{s.key.cancel(), hear, "No run can be cancelled without it."},
		{s.key.news(), say, "No task can be run or ended without it."},
		{s.key.mail(), say, "No task can be submitted without it."},
		{s.key.answers(), say, "No question can be answered without it."},
		{s.key.asked(), say, noOffer},
		{s.key.replies(), say, noOffer},
	} {
		if err := use.try(use.channel); denied(err) {
			found = append(found, refused(Fatal, "the channel "+use.channel, use.why, err))
		} else if err != nil {
			return nil, fmt.Errorf("diagnose redis: %w", err)
		}
	}
	return found, nil
}

// isOpen reports whether a Redis accepts commands without credentials. A Unix socket counts as closed if other users
// cannot open it.
func isOpen(ctx context.Context, o *redis.Options) bool {
	if o.Network == "unix" {
		if info, err := os.Stat(o.Addr); err == nil && info.Mode().Perm()&0o022 == 0 {
			return false
		}
	}
	anybody := redis.NewClient(&redis.Options{
		Network: o.Network, Addr: o.Addr, TLSConfig: o.TLSConfig, DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, MaxRetries: -1,
		ContextTimeoutEnabled: true,
	})
	defer anybody.Close()
	return anybody.Ping(ctx).Err() == nil
}

// denied reports whether Redis' access control lists rejected a command.
func denied(err error) bool { return err != nil && strings.Contains(err.Error(), "NOPERM") }

// deniedWhat is the start of the text of such a finding.
const deniedWhat = "the Redis user may not use "

// refused returns the finding for a rejected command.
func refused(level Severity, what, why string, err error) Finding {
	return Finding{level, deniedWhat + what, why + " Redis says: " + err.Error(), "Allow it by ACL SETUSER (docs/operations.md)."}
}
