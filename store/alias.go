package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Alias lets one thread's name stand for another thread, so that a pull request opened from a Slack thread joins that thread. The
// latest alias of a name wins. It changes what [Threads.Resolve] says, not the tasks that were submitted before.
func (s *Threads) Alias(ctx context.Context, alias, thread string) error {
	r, err := s.run(ctx, "alias", alias, thread, s.cfg.SessionTTL.Milliseconds())
	if err == nil && r.text(0) == "no" {
		err = errors.New("it would stand for itself")
	}
	if err != nil {
		return fmt.Errorf("alias %s to %s: %w", alias, thread, err)
	}
	return nil
}

// Resolve tells which thread a name stands for: itself when it is no alias. It follows one hop. An alias that is used does not expire;
// one that nobody used for SessionTTL has no session left to join.
func (s *Threads) Resolve(ctx context.Context, thread string) (string, error) {
	target, err := s.redis.GetEx(ctx, s.key.alias(thread), s.cfg.SessionTTL).Result()
	if errors.Is(err, redis.Nil) {
		return thread, nil
	}
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", thread, err)
	}
	return target, nil
}
