package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Threads holds what belongs to a thread and outlives its tasks.
type Threads struct {
	*conn
	values *values
	life   time.Duration // of an alias since its last use
}

// Topic reads what the latest task of a thread stored for its next one; see [Record]. It outlives the tasks and
// expires with the thread's session. Topic returns [ErrNotFound] if it has expired or the thread never had a task.
func (s *Threads) Topic(ctx context.Context, thread string) (json.RawMessage, error) {
	topic, err := s.redis.Get(ctx, s.key("topic", thread)).Result()
	switch {
	case wrongType(err):
		return nil, fmt.Errorf("read topic of %s: %w", thread, ErrDamaged)
	case errors.Is(err, redis.Nil):
		return nil, fmt.Errorf("read topic of %s: %w", thread, ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("read topic of %s: %w", thread, err)
	}
	return raw(topic), nil
}

// OpenTasks reads the tasks of a thread that wait or run, in the order in which they start. Absorbed tasks are not
// included.
func (s *Threads) OpenTasks(ctx context.Context, thread string) ([]Record, error) {
	records, err := s.indexed(ctx, s.key("waiting", thread), 0)
	return records, wrapf(err, "read open tasks of %s", thread)
}

// LatestTasks reads the newest n tasks of a thread that stored a topic, oldest first, in any state. Expired tasks are
// left out.
func (s *Threads) LatestTasks(ctx context.Context, thread string, n int) ([]Record, error) {
	records, err := s.indexed(ctx, s.key("thread", thread), -n)
	return records, wrapf(err, "read latest tasks of %s", thread)
}

// Next reads the thread's running task or the one that starts next. It returns [ErrNotFound] if none waits or runs.
func (s *Threads) Next(ctx context.Context, thread string) (Record, error) {
	ids, err := s.redis.ZRange(ctx, s.key("waiting", thread), 0, 0).Result()
	if err != nil {
		return Record{}, fmt.Errorf("get next task of %s: %w", thread, err)
	}
	if len(ids) == 0 {
		return Record{}, fmt.Errorf("get next task of %s: %w", thread, ErrNotFound)
	}
	return s.get(ctx, ids[0])
}

// Alias makes one thread's name an alias of another thread, so that a pull request opened from a Slack thread joins
// that thread. The latest alias of a name wins. It affects [Threads.Resolve], not tasks that were submitted before.
func (s *Threads) Alias(ctx context.Context, alias, thread string) error {
	r, err := s.run(ctx, "alias", alias, thread, s.life.Milliseconds())
	if err == nil && r.text(0) == "no" {
		err = errors.New("the alias is the thread itself")
	}
	return wrapf(err, "alias %s to %s", alias, thread)
}

// Resolve returns the thread of an alias, or the name itself if it is no alias. It follows one hop. An
// alias expires SessionTTL after its last use, with the thread's session.
func (s *Threads) Resolve(ctx context.Context, thread string) (string, error) {
	target, err := s.redis.GetEx(ctx, s.key("alias", thread), s.life).Result()
	if errors.Is(err, redis.Nil) {
		return thread, nil
	}
	return target, wrapf(err, "resolve %s", thread)
}

// maxPushed is the number of commits kept per branch. Two would be enough: the result of the last push may be unknown.
const maxPushed = 10

// Pushing records that the running task is about to push a commit to a branch of a repository, whether or not the push
// succeeds. It is recorded first, because the worker may die right after the push. Pushing returns [ErrStale] if the
// claim is lost; the run must not push then.
func (c *Claim) Pushing(ctx context.Context, repo, branch, commit string) error {
	_, err := c.run(ctx, "pushing", c.ID(), c.fence, repo+" "+branch, commit, maxPushed,
		c.store.cfg.SessionTTL.Milliseconds())
	return wrapf(err, "note push of %s", c.ID())
}

// Pushed lists the latest commits that errand may have pushed to a branch. They expire SessionTTL after the last push.
func (s *Threads) Pushed(ctx context.Context, repo, branch string) ([]string, error) {
	commits, err := s.redis.LRange(ctx, s.key("pushed", repo+" "+branch), 0, -1).Result()
	return commits, wrapf(err, "read pushes to %s of %s", branch, repo)
}
