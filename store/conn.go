package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client is a [redis.Client]. Fields have this type, because a package compiles all 1,700 methods of go-redis'
// clients again if it uses a type that leads to one of them: in 9.23 their own type is an argument of a generic one.
type Client interface {
	redis.Cmdable
	Do(ctx context.Context, args ...any) *redis.Cmd
}

func subscribe(ctx context.Context, c Client, channels ...string) *redis.PubSub {
	return c.(*redis.Client).Subscribe(ctx, channels...) //nolint:forcetypeassert // New has checked it
}

// conn is what the tables share: the connection to Redis, the prefix of the keys and the scripts. It is read-only.
type conn struct {
	redis    Client
	prefix   string // of every key
	scripts  map[string]*redis.Script
	replicas int // Config.Replicas
}

// replicated are the steps that wait for Config.Replicas: what someone outside is told after them has to stay true.
var replicated = []string{"submit", "amend", "answer", "cancel", "retry", "pushing", "end", "endwaiting", "restore"}

// run executes one script in one round trip, or two if Redis does not have the script yet. It returns Redis' errors
// and the script's refusals, and [ErrNotReplicated] for a step that is in replicated.
func (c *conn) run(ctx context.Context, name string, args ...any) (reply, error) {
	args = append([]any{c.prefix}, args...)
	var cmd *redis.Cmd
	if c.replicas > 0 && slices.Contains(replicated, name) {
		var err error
		if cmd, err = c.runReplicated(ctx, c.scripts[name], args); err != nil {
			return nil, err
		}
	} else {
		cmd = c.scripts[name].Run(ctx, c.redis, nil, args...)
	}
	values, err := cmd.Slice()
	if err != nil {
		return nil, err
	}
	r := reply(values)
	return r, verdict(r)
}

// replicaLimit bounds the wait for replicas, within the client's timeouts.
const replicaLimit = time.Second

// runReplicated executes a script and waits until enough replicas have its writes.
func (c *conn) runReplicated(ctx context.Context, script *redis.Script, args []any) (cmd *redis.Cmd, err error) {
	call := script.EvalSha
	for {
		err = c.replicate(ctx, func(p redis.Pipeliner) { cmd = call(ctx, p, nil, args...) })
		if !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return cmd, err
		}
		call = script.Eval
	}
}

// replicate writes and waits until enough replicas have that, and so everything that anyone has written before. It is
// one pipeline, because WAIT is about the connection's own writes.
func (c *conn) replicate(ctx context.Context, write func(redis.Pipeliner)) error {
	var confirmed *redis.Cmd
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		write(p)
		confirmed = p.Do(ctx, "WAIT", c.replicas, replicaLimit.Milliseconds())
		return nil
	})
	if err != nil {
		return err
	}
	if n, err := confirmed.Int(); err != nil || n < c.replicas {
		return fmt.Errorf("%w: %d of %d", ErrNotReplicated, n, c.replicas)
	}
	return nil
}

// pipelined is Redis' Pipelined for reads that may each fail with wrongType.
func (c *conn) pipelined(ctx context.Context, fn func(redis.Pipeliner) error) error {
	cmds, err := c.redis.Pipelined(ctx, fn)
	if !wrongType(err) {
		return err
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !wrongType(err) {
			return err
		}
	}
	return nil
}

// each sends a read for each of some names in one round trip. A read may fail with wrongType.
func each[C redis.Cmder](
	ctx context.Context, c *conn, names []string, read func(p redis.Pipeliner, name string) C,
) ([]C, error) {
	replies := make([]C, len(names))
	err := c.pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			replies[i] = read(p, name)
		}
		return nil
	})
	return replies, err
}

func (c *conn) get(ctx context.Context, id string) (Record, error) {
	fields, err := c.redis.HGetAll(ctx, c.key("task", id)).Result()
	if wrongType(err) {
		return noHash(id), nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("get %s: %w", id, err)
	}
	if len(fields) == 0 {
		return Record{}, fmt.Errorf("get %s: %w", id, ErrNotFound)
	}
	return decode(id, fields), nil
}

// records reads many records in one round trip and leaves out expired ones. An unreadable record has Unreadable set.
func (c *conn) records(ctx context.Context, ids []string) ([]Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	replies, err := each(ctx, c, ids, func(p redis.Pipeliner, id string) *redis.MapStringStringCmd {
		return p.HGetAll(ctx, c.key("task", id))
	})
	if err != nil {
		return nil, err
	}
	var records []Record
	for i, id := range ids {
		if fields := replies[i].Val(); len(fields) > 0 {
			records = append(records, decode(id, fields))
		} else if wrongType(replies[i].Err()) {
			records = append(records, noHash(id))
		}
	}
	return records, nil
}

// indexed reads the records of the IDs in a sorted set, from the one at an index on; a negative index counts from the
// end.
func (c *conn) indexed(ctx context.Context, key string, first int) ([]Record, error) {
	ids, err := c.redis.ZRange(ctx, key, int64(first), -1).Result()
	if err != nil {
		return nil, err
	}
	return c.records(ctx, ids)
}
