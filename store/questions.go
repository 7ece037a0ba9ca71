package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Questions holds the questions of running tasks and their answers.
type Questions struct {
	*conn
	retention time.Duration // of a message that became an answer
}

// Question is a question of a running task to people. Its owner chooses the key. The same question has the same key in
// every run of the task, and so the same answer.
type Question struct {
	Key    string
	Body   json.RawMessage // opaque
	Answer json.RawMessage // opaque; nil until answered
	Fence  int64           // of the claim that asked last
}

// Ask stores a question of the running task. It returns the answer if an earlier run of the task asked the same
// question and got one. It returns [ErrStale] if the claim is lost and [ErrTooLarge] beyond 16 KiB.
func (c *Claim) Ask(ctx context.Context, key string, body json.RawMessage) (answer json.RawMessage, err error) {
	if len(body) > maxEvent {
		return nil, fmt.Errorf("ask for %s: question of %d bytes, limit %d: %w", c.ID(), len(body),
			maxEvent, ErrTooLarge)
	}
	r, err := c.store.run(ctx, "ask", c.ID(), c.fence, key, []byte(body))
	return raw(r.text(1)), wrapf(err, "ask for %s", c.ID())
}

// Await waits for the answer to a question of this task, until ctx ends. It reads when an answer is announced, and
// every Refresh in case an announcement was lost.
func (c *Claim) Await(ctx context.Context, key string) (json.RawMessage, error) {
	var answer string
	err := c.store.hints.waitFor(ctx, c.store.key("answers"), c.ID(), func() (known bool) {
		var err error
		answer, err = c.store.redis.HGet(ctx, c.store.key("questions", c.ID()), "a:"+key).Result()
		return err == nil
	})
	return raw(answer), wrapf(err, "await answer for %s", c.ID())
}

// First reports whether this is the first call with the key in any run of the task. Callers use it to say something
// only once.
func (c *Claim) First(ctx context.Context, key string) (bool, error) {
	r, err := c.store.run(ctx, "first", c.ID(), c.fence, key, rand.Text())
	return r.text(0) == "ok", wrapf(err, "mark as said for %s", c.ID())
}

// FirstWhileWaiting is [Claim.First] for a waiting task that no worker has claimed. It returns [ErrStale] if the task
// is not waiting.
func (s *Questions) FirstWhileWaiting(ctx context.Context, id, key string) (bool, error) {
	r, err := s.run(ctx, "first", id, "", key, rand.Text())
	return r.text(0) == "ok", wrapf(err, "mark as said for %s", id)
}

// Unsay takes back that [Questions.FirstWhileWaiting] was called with the key, because nothing was said.
func (s *Questions) Unsay(ctx context.Context, id, key string) error {
	return wrapf(s.redis.HDel(ctx, s.key("questions", id), "s:"+key).Err(), "unmark as said for %s", id)
}

// Answer answers a question of a task, from any process. The first answer counts, and Answer returns it. message is
// the ID that the answer would have as a task, or empty. If it becomes the answer, submitting it or answering with it
// again returns [ErrSpent], for as long as the task is kept. Answer returns [ErrNotFound] if the question does not
// exist, [ErrEnded] if the task has ended, and [ErrTooLarge] beyond 16 KiB.
func (s *Questions) Answer(
	ctx context.Context, id, key string, answer json.RawMessage, message string,
) (first json.RawMessage, err error) {
	if len(answer) > maxEvent {
		return nil, fmt.Errorf("answer %s: %d bytes, limit %d: %w", id, len(answer), maxEvent, ErrTooLarge)
	}
	r, err := s.run(ctx, "answer", id, key, []byte(answer), message, rand.Text(), s.retention.Milliseconds())
	return raw(r.text(1)), wrapf(err, "answer %s", id)
}

// List reads the questions of a task, sorted by key.
func (s *Questions) List(ctx context.Context, id string) ([]Question, error) {
	lists, err := s.ListAll(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// ListAll reads the questions of each of the tasks, in one round trip.
func (s *Questions) ListAll(ctx context.Context, ids []string) ([][]Question, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	replies, err := each(ctx, s.conn, ids, func(p redis.Pipeliner, id string) *redis.MapStringStringCmd {
		return p.HGetAll(ctx, s.key("questions", id)) // a key of another type holds no questions
	})
	if err != nil {
		return nil, fmt.Errorf("read questions of %s: %w", strings.Join(ids, ", "), err)
	}
	lists := make([][]Question, len(ids))
	for i := range ids {
		fields := replies[i].Val()
		for field, body := range fields {
			if key, ok := strings.CutPrefix(field, "q:"); ok {
				lists[i] = append(lists[i], Question{
					Key: key, Body: raw(body), Answer: raw(fields["a:"+key]), Fence: int64(number(fields["f:"+key])),
				})
			}
		}
		slices.SortFunc(lists[i], func(a, b Question) int { return strings.Compare(a.Key, b.Key) })
	}
	return lists, nil
}
