// Package redisbatch lets scripts that are called at the same time travel to Redis together, as a database commits transactions of many
// clients at once: a call that finds nobody under way goes at once, and those that come meanwhile go next, in one pipeline. One at a time
// is as fast as without; under load there are fewer system calls on both sides, and no waiting for connections.
//
// Calls that travel together are executed in the order in which they came, but each by itself: one that fails does not touch the others.
package redisbatch

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// lanes is how many batches are under way at once: while Redis answers one, the next is on its way.
const lanes = 2

// Add makes a client batch its scripts. It is for clients of many short calls: a long one holds up those that come with it.
func Add(c redis.UniversalClient) { c.AddHook(&batcher{client: c}) }

// batcher is the hook.
type batcher struct {
	client redis.UniversalClient

	mu       sync.Mutex
	waiting  []*call
	underWay int // batches
}

// call is one command on its way.
type call struct {
	ctx  context.Context
	cmd  *redis.Cmd // our own: whoever gave up waiting has his back
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

// drive sends what waits until nothing does.
func (b *batcher) drive() {
	for batch := b.next(); batch != nil; batch = b.next() {
		b.send(batch)
	}
}

// next takes all that waits.
func (b *batcher) next() (batch []*call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch, b.waiting = b.waiting, nil
	if batch == nil {
		b.underWay--
	}
	return batch
}

// send is one exchange. The client's own time limits bound it: it is nobody's alone.
func (b *batcher) send(batch []*call) {
	pipe := b.client.Pipeline()
	for _, c := range batch {
		if err := c.ctx.Err(); err != nil { // nobody waits for it any more
			c.cmd.SetErr(err)
			continue
		}
		_ = pipe.Process(c.ctx, c.cmd) // it only queues
	}
	_, _ = pipe.Exec(context.Background()) // each call has its own error
	for _, c := range batch {
		close(c.done)
	}
}
