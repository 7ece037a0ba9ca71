package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// run executes a step of the holder. Where Redis has lost the task (FLUSHALL, another volume) it is put back first, as it was claimed: the holder
// is the last who knows of it. What it had stored since then is lost. A task that was taken over or has ended stays what it is: [ErrStale].
func (c *Claim) run(ctx context.Context, name string, args ...any) (reply, error) {
	r, err := c.store.run(ctx, name, args...)
	if !errors.Is(err, ErrStale) {
		return r, err
	}
	if _, err := c.restore(ctx, nil); err != nil {
		return nil, err
	}
	return c.store.run(ctx, name, args...)
}

// restore puts back the record of a task that Redis has lost. When another task of the thread has begun since, the right to run is lost, too:
// then the task only gets its ending, if there is one, and its final message is in the outbox.
func (c *Claim) restore(ctx context.Context, ending json.RawMessage) (ended bool, err error) {
	if c.over.Load() {
		return false, ErrStale
	}
	args := []any{
		c.ID(), c.Thread(), c.fence, c.token, c.store.cfg.ClaimTTL.Milliseconds(), c.store.lease().Milliseconds(), []byte(ending), c.store.cfg.EventCap,
	}
	r, err := c.store.run(ctx, "restore", append(args, c.fields...)...)
	if err != nil {
		return false, fmt.Errorf("put back: %w", err)
	}
	c.restored.Store(true)
	return r.text(0) == "no", nil
}

// Restored reports whether Redis had lost the task, and has it again from this holder.
func (c *Claim) Restored() bool { return c.restored.Load() }
