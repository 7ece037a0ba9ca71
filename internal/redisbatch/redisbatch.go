// Package redisbatch sends concurrent script calls to Redis together, like a database that commits the transactions of
// many clients at once: a call goes at once if no other is under way, and calls that arrive meanwhile go next, in one
// pipeline. A single call is as fast as without batching. Under load there are fewer system calls on both sides, and
// no waiting for connections.
//
// The calls of a batch are executed in the order of arrival, but independently: a failing call does not affect the
// others.
package redisbatch

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// lanes is the number of concurrent batches: while Redis answers one, the next is on its way.
const lanes = 2

// Add makes a client batch its scripts. Use it for clients with many short calls: a long call delays the others of its
// batch.
func Add(c redis.UniversalClient) { c.AddHook(&batcher{client: c}) }

// batcher is the go-redis hook.
type batcher struct {
	client redis.UniversalClient

	mu       sync.Mutex
	waiting  []*call
	underWay int // number of batches
}

// call is one command under way.
type call struct {
	ctx  context.Context
	cmd  *redis.Cmd // a copy: a caller that gave up has its own back
	done chan struct{}
}

func (b *batcher) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *batcher) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *batcher) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c, ok := cmd.(*redis.Cmd)
		if !ok || c.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		own := &call{ctx: ctx, cmd: redis.NewCmd(ctx, c.Args()...), done: make(chan struct{})}
		b.add(own)
		select {
		case <-own.done:
			c.SetVal(own.cmd.Val())
			c.SetErr(own.cmd.Err())
		case <-ctx.Done():
			c.SetErr(fmt.Errorf("wait for redis: %w", context.Cause(ctx)))
		}
		return c.Err()
	}
}

func (b *batcher) add(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, c)
	if b.underWay < lanes {
		b.underWay++
		go b.drive()
	}
}

// drive sends batches until no call waits.
func (b *batcher) drive() {
	for batch := b.next(); batch != nil; batch = b.next() {
		b.send(batch)
	}
}

// next returns and removes all waiting calls.
func (b *batcher) next() (batch []*call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch, b.waiting = b.waiting, nil
	if batch == nil {
		b.underWay--
	}
	return batch
}

// send sends one batch. Only the client's own time limits apply, because several callers share it.
func (b *batcher) send(batch []*call) {
	pipe := b.client.Pipeline()
	for _, c := range batch {
		if err := c.ctx.Err(); err != nil { // its caller has given up
			c.cmd.SetErr(err)
			continue
		}
		_ = pipe.Process(c.ctx, c.cmd) // only queues the command
	}
	_, _ = pipe.Exec(context.Background()) // each call has its own error
	for _, c := range batch {
		close(c.done)
	}
}
