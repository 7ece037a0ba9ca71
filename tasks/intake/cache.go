package intake

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// maxCached is how many answers a Cache holds.
const maxCached = 10_000

// Cache remembers answers of a service by key, and asks once for all who want the same key at the same time. Set its fields before use.
type Cache[T any] struct {
	Life      time.Duration    // of an answer; 0: forever
	ErrorLife time.Duration    // of an error; 0: the next caller asks again
	Now       func() time.Time // required

	mu      sync.Mutex
	entries map[string]*cached[T]
}

// cached is one answer. value and err are written before ready is closed.
type cached[T any] struct {
	ready chan struct{}
	value T
	err   error
	done  bool
	until time.Time // zero: forever
}

// Get returns the answer for key, and calls ask if it is unknown. It returns when ctx ends, even if ask continues for
// another caller.
func (c *Cache[T]) Get(ctx context.Context, key string, ask func(context.Context) (T, error)) (T, error) {
	e, first := c.entry(key)
	if first {
		e.value, e.err = ask(ctx)
		c.finish(key, e)
	}
	select {
	case <-e.ready:
		return e.value, e.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for an answer: %w", context.Cause(ctx))
	}
}

// Peek returns the answer for key if it is known and never expires. It neither asks nor waits.
func (c *Cache[T]) Peek(key string) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil && e.done && e.err == nil && e.until.IsZero() {
		return e.value, true
	}
	return value, false
}

// entry returns the entry for key; first means that the caller has to fill it.
func (c *Cache[T]) entry(key string) (e *cached[T], first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[key]; e != nil && (!e.done || e.until.IsZero() || c.Now().Before(e.until)) {
		return e, false
	}
	if c.entries == nil {
		c.entries = map[string]*cached[T]{}
	}
	if len(c.entries) >= maxCached {
		for other := range c.entries { // any entry: asking again costs one call
			delete(c.entries, other)
			break
		}
	}
	e = &cached[T]{ready: make(chan struct{})}
	c.entries[key] = e
	return e, true
}

func (c *Cache[T]) finish(key string, e *cached[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.done = true
	switch {
	case e.err == nil && c.Life > 0:
		e.until = c.Now().Add(c.Life)
	case e.err != nil && c.ErrorLife > 0:
		e.until = c.Now().Add(c.ErrorLife)
	case e.err != nil && c.entries[key] == e:
		delete(c.entries, key)
	}
	close(e.ready)
}
