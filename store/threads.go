package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Topic reads what the latest task of a thread left for its next one; see [Record]. It outlives the tasks themselves and is gone with the
// thread's session: [ErrNotFound] then, and in a thread that never had a task.
func (s *Threads) Topic(ctx context.Context, thread string) (json.RawMessage, error) {
	topic, err := s.redis.Get(ctx, s.key.topic(thread)).Result()
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

// OpenTasks reads the tasks of a thread that wait or run, in the order in which they start. Those that are in the run of another are not among
// them.
func (s *Threads) OpenTasks(ctx context.Context, thread string) ([]Record, error) {
	ids, err := s.redis.ZRange(ctx, s.key.waiting(thread), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read open tasks of %s: %w", thread, err)
	}
	records, err := s.records(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read open tasks of %s: %w", thread, err)
	}
	return records, nil
}

// LatestTasks reads the newest tasks of a thread that left a topic, at most n, oldest first. They may be in any state, also in the run of another;
// those that have expired are left out.
func (s *Threads) LatestTasks(ctx context.Context, thread string, n int) ([]Record, error) {
	ids, err := s.redis.ZRange(ctx, s.key.thread(thread), int64(-n), -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read latest tasks of %s: %w", thread, err)
	}
	records, err := s.records(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read latest tasks of %s: %w", thread, err)
	}
	return records, nil
}

// Next reads the thread's task that starts next, or is running already; [ErrNotFound] when none waits.
func (s *Threads) Next(ctx context.Context, thread string) (Record, error) {
	ids, err := s.redis.ZRange(ctx, s.key.waiting(thread), 0, 0).Result()
	if err != nil {
		return Record{}, fmt.Errorf("get next task of %s: %w", thread, err)
	}
	if len(ids) == 0 {
		return Record{}, fmt.Errorf("get next task of %s: %w", thread, ErrNotFound)
	}
	return s.get(ctx, ids[0])
}

// Alias makes one thread's name an alias of another thread, so that a pull request opened from a Slack thread joins that thread. The
// latest alias of a name wins. It affects [Threads.Resolve], not tasks that were submitted before.
func (s *Threads) Alias(ctx context.Context, alias, thread string) error {
	r, err := s.run(ctx, "alias", alias, thread, s.cfg.SessionTTL.Milliseconds())
	if err == nil && r.text(0) == "no" {
		err = errors.New("the alias is the thread itself")
	}
	if err != nil {
		return fmt.Errorf("alias %s to %s: %w", alias, thread, err)
	}
	return nil
}

// Resolve returns the thread that a name stands for, or the name itself if it is no alias. It follows one hop. An alias expires SessionTTL
// after its last use, with the thread's session.
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

// ThreadLock locks an idle thread, for example to remove its directories. New tasks of the thread find it busy until the lock is released
// or expires.
type ThreadLock struct {
	db     *db
	thread string
	token  string
}

// Lock takes an idle thread for at most ttl. [ErrBusy] when one of its tasks waits or runs, or somebody else has it.
func (s *Threads) Lock(ctx context.Context, thread string, ttl time.Duration) (*ThreadLock, error) {
	l := &ThreadLock{db: s.db, thread: thread, token: "lock " + rand.Text()}
	if _, err := s.run(ctx, "lockthread", thread, l.token, ttl.Milliseconds()); err != nil {
		return nil, fmt.Errorf("lock %s: %w", thread, err)
	}
	return l, nil
}

// Release releases the lock. It returns [ErrStale] if the lock has expired.
func (l *ThreadLock) Release(ctx context.Context) error {
	if _, err := l.db.run(ctx, "unlockthread", l.thread, l.token); err != nil {
		return fmt.Errorf("release %s: %w", l.thread, err)
	}
	return nil
}

// maxPushed is how many commits of a branch are remembered. The last two would do: of the last push nobody may have seen the end.
const maxPushed = 10

// Pushing notes that the running task is about to push a commit to a branch of a repository. [ErrStale] when the task is not ours any
// more, and so not ours to push. The branch may get to that commit or not: it is noted before, because afterwards it could be too late.
func (c *Claim) Pushing(ctx context.Context, repo, branch, commit string) error {
	_, err := c.run(ctx, "pushing", c.ID(), c.fence, repo+" "+branch, commit, maxPushed, c.store.cfg.SessionTTL.Milliseconds())
	if err != nil {
		return fmt.Errorf("note push of %s: %w", c.ID(), err)
	}
	return nil
}

// Pushed lists the latest commits that a branch may be at by our doing. There are none of a branch that nobody pushed to for SessionTTL.
func (s *Threads) Pushed(ctx context.Context, repo, branch string) ([]string, error) {
	commits, err := s.redis.LRange(ctx, s.key.pushed(repo, branch), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read pushes to %s of %s: %w", branch, repo, err)
	}
	return commits, nil
}
