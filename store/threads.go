package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Topic reads what the latest task of a thread stored for its next one; see [Record]. It outlives the tasks and
// expires with the thread's session. Topic returns [ErrNotFound] if it has expired or the thread never had a task.
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

// OpenTasks reads the tasks of a thread that wait or run, in the order in which they start. Absorbed tasks are not
// included.
func (s *Threads) OpenTasks(ctx context.Context, thread string) ([]Record, error) {
	records, err := s.indexed(ctx, s.key.waiting(thread), 0)
	return records, wrapf(err, "read open tasks of %s", thread)
}

// LatestTasks reads the newest n tasks of a thread that stored a topic, oldest first, in any state. Expired tasks are
// left out.
func (s *Threads) LatestTasks(ctx context.Context, thread string, n int) ([]Record, error) {
	records, err := s.indexed(ctx, s.key.thread(thread), -n)
	return records, wrapf(err, "read latest tasks of %s", thread)
}

// Next reads the thread's running task or the one that starts next. It returns [ErrNotFound] if none waits or runs.
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

// Alias makes one thread's name an alias of another thread, so that a pull request opened from a Slack thread joins
// that thread. The latest alias of a name wins. It affects [Threads.Resolve], not tasks that were submitted before.
func (s *Threads) Alias(ctx context.Context, alias, thread string) error {
	r, err := s.run(ctx, "alias", alias, thread, s.cfg.SessionTTL.Milliseconds())
	if err == nil && r.text(0) == "no" {
		err = errors.New("the alias is the thread itself")
	}
	return wrapf(err, "alias %s to %s", alias, thread)
}

// Resolve returns the thread of an alias, or the name itself if it is no alias. It follows one hop. An
// alias expires SessionTTL after its last use, with the thread's session.
func (s *Threads) Resolve(ctx context.Context, thread string) (string, error) {
	target, err := s.redis.GetEx(ctx, s.key.alias(thread), s.cfg.SessionTTL).Result()
	if errors.Is(err, redis.Nil) {
		return thread, nil
	}
	return target, wrapf(err, "resolve %s", thread)
}

// ThreadLock locks an idle thread, for example to remove its directories. New tasks of the thread find it busy until
// the lock is released or expires.
type ThreadLock struct {
	db     *db
	thread string
	token  string
}

// Lock locks an idle thread for at most ttl. It returns [ErrBusy] if one of its tasks waits or runs, or the thread is
// locked already.
func (s *Threads) Lock(ctx context.Context, thread string, ttl time.Duration) (*ThreadLock, error) {
	l := &ThreadLock{db: s.db, thread: thread, token: fmt.Sprintf("lock %s %d", rand.Text(), ttl.Milliseconds())}
	if _, err := s.run(ctx, "lockthread", thread, l.token, ttl.Milliseconds()); err != nil {
		return nil, fmt.Errorf("lock %s: %w", thread, err)
	}
	return l, nil
}

// Release releases the lock. It returns [ErrStale] if the lock has expired.
func (l *ThreadLock) Release(ctx context.Context) error {
	_, err := l.db.run(ctx, "unlockthread", l.thread, l.token)
	return wrapf(err, "release %s", l.thread)
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
	commits, err := s.redis.LRange(ctx, s.key.pushed(repo, branch), 0, -1).Result()
	return commits, wrapf(err, "read pushes to %s of %s", branch, repo)
}

// MaxCheckpoint bounds the session's data and the work of a checkpoint, together, in bytes.
const MaxCheckpoint = 8 << 20

// Checkpoint is the state from which an unfinished task can resume. Session and work are saved, read and replaced
// together.
type Checkpoint struct {
	Session Session
	Work    []byte    // opaque
	Holds   []string  // IDs of absorbed tasks that are in the session: they stay with the waiting task; not read back
	At      time.Time // when it was saved, by Redis' clock; ignored by SaveCheckpoint
}

// SaveCheckpoint replaces the running task's only checkpoint. The checkpoint is deleted when the task ends and expires
// after SessionTTL. SaveCheckpoint returns [ErrTooLarge] beyond MaxCheckpoint, and [ErrStale] if the claim is lost or
// the task has ended.
func (c *Claim) SaveCheckpoint(ctx context.Context, p Checkpoint) error {
	if n := len(p.Session.Data) + len(p.Work); n > MaxCheckpoint {
		return fmt.Errorf("save checkpoint of %s: %d bytes, limit %d: %w", c.ID(), n, MaxCheckpoint, ErrTooLarge)
	}
	body, err := c.store.keep(ctx, checkpoint, c.ID(),
		join([]byte(p.Session.ID), p.Session.Meta, p.Session.Data, p.Work))
	if err != nil {
		return fmt.Errorf("save checkpoint of %s: %w", c.ID(), err)
	}
	r, err := c.run(ctx, "savecheckpoint", c.ID(), c.fence, c.store.cfg.SessionTTL.Milliseconds(), body,
		strings.Join(p.Holds, " "))
	if err != nil {
		c.store.discardUnused(ctx, body, err)
		return fmt.Errorf("save checkpoint of %s: %w", c.ID(), err)
	}
	c.store.replace(ctx, r.text(1))
	return nil
}

// Checkpoint reads a task's checkpoint. It returns [ErrNotFound] if the task has no checkpoint, [ErrDamaged] if it
// differs from what was saved or is on another machine, and [ErrObjects].
func (s *Store) Checkpoint(ctx context.Context, id string) (Checkpoint, error) {
	f, err := s.redis.HGetAll(ctx, s.key.checkpoint(id)).Result()
	if err == nil && len(f) == 0 {
		err = ErrNotFound
	}
	var body []byte
	if err == nil {
		body, err = s.fetch(ctx, f["body"])
	}
	var parts [][]byte
	if err == nil {
		parts, err = split(body)
	}
	if err == nil && len(parts) != 4 {
		err = ErrDamaged
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint of %s: %w", id, err)
	}
	return Checkpoint{
		Session: Session{ID: string(parts[0]), Meta: raw(string(parts[1])), Data: parts[2]}, Work: parts[3],
		At: fromMicros(f["at"]),
	}, nil
}

// maxSession bounds a session's data, in bytes.
const maxSession = 8 << 20

// Session is what a later run of the thread needs to resume the conversation.
type Session struct {
	ID   string          // the CLI's session ID
	Meta json.RawMessage // the owner's notes about the session; opaque, at most about 100 KiB
	Data []byte          // the CLI's saved state; opaque
}

// SaveSession replaces the thread's session. It returns [ErrTooLarge] beyond 8 MiB and [ErrStale] if the claim is
// lost.
func (c *Claim) SaveSession(ctx context.Context, ses Session) error {
	if n := len(ses.Data); n > maxSession {
		return fmt.Errorf("save session of %s: %d bytes, limit %d: %w", c.Thread(), n, maxSession, ErrTooLarge)
	}
	body, err := c.store.keep(ctx, session, c.Thread(), ses.Data)
	if err != nil {
		return fmt.Errorf("save session of %s: %w", c.Thread(), err)
	}
	r, err := c.run(ctx, "savesession", c.ID(), c.Thread(), c.fence, c.token, c.store.cfg.SessionTTL.Milliseconds(),
		ses.ID, string(ses.Meta), body)
	if err != nil {
		c.store.discardUnused(ctx, body, err)
		return fmt.Errorf("save session of %s: %w", c.Thread(), err)
	}
	c.store.replace(ctx, r.text(1))
	return nil
}

// Session reads the thread's latest session. It returns [ErrNotFound] if the thread has no session or it has expired,
// and [ErrDamaged] if it differs from what was saved.
func (s *Threads) Session(ctx context.Context, thread string) (Session, error) {
	f, err := s.redis.HGetAll(ctx, s.key.session(thread)).Result()
	if wrongType(err) {
		err = ErrDamaged
	}
	if err != nil {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, err)
	}
	if len(f) == 0 {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, ErrNotFound)
	}
	data, err := s.fetch(ctx, f["data"])
	if err != nil {
		return Session{}, fmt.Errorf("read session of %s: %w", thread, err)
	}
	return Session{ID: f["id"], Meta: raw(f["meta"]), Data: data}, nil
}

// SessionMeta reads only the notes about the thread's latest session. It returns [ErrNotFound] like Session.
func (s *Threads) SessionMeta(ctx context.Context, thread string) (json.RawMessage, error) {
	meta, err := s.redis.HGet(ctx, s.key.session(thread), "meta").Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return raw(meta), wrapf(err, "read session of %s", thread)
}
