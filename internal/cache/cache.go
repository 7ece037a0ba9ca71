// Package cache remembers for a while what a service has answered.
package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// maxCached is how many answers a Cache holds.
const maxCached = 10_000

// Cache remembers answers of a service by key, and asks once for all who want the same key at the same time. Set its
// fields before use.
type Cache[T any] struct {
	Limit     time.Duration    // of asking; required
	Life      time.Duration    // of an answer; 0 for ever
	FromAsked bool             // Life counts from the question on: when the service looked is not known
	ErrorLife time.Duration    // of an error; 0 if the next caller asks again
	Quiet     bool             // ask nothing for ErrorLife after a question that was not answered within Limit
	Now       func() time.Time // required

	mu      sync.Mutex
	entries map[string]*cached[T]
	silent  *cached[T] // the last question that was not answered within Limit
}

// cached is one answer. value and err are written before ready is closed.
type cached[T any] struct {
	asked time.Time
	ready chan struct{}
	value T
	err   error
	done  bool
	until time.Time // zero: forever
}

// Get returns the answer for key, and calls ask if it is unknown. It returns when ctx ends; ask then continues for
// others, until Limit: they must not get an error that only says that the first caller had no more time.
func (c *Cache[T]) Get(ctx context.Context, key string, ask func(context.Context) (T, error)) (T, error) {
	e, first := c.entry(key)
	if first {
		go func() {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Limit)
			defer cancel()
			defer func() {
				if p := recover(); p != nil { // in a separate goroutine it would end the process
					debug.PrintStack()
					e.err = fmt.Errorf("panic: %v", p)
				}
				c.finish(key, e, limited.Err() != nil)
			}()
			e.value, e.err = ask(limited)
		}()
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

// Drop forgets the answer for key if it is known and stale.
func (c *Cache[T]) Drop(key string, stale func(T) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil && e.done && e.err == nil && stale(e.value) {
		delete(c.entries, key)
	}
}

// entry returns the entry for key; first means that the caller has to fill it.
func (c *Cache[T]) entry(key string) (e *cached[T], first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[key]; e != nil && (!e.done || e.until.IsZero() || c.Now().Before(e.until)) {
		return e, false
	}
	if c.silent != nil && c.Now().Before(c.silent.until) {
		return c.silent, false
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
	e = &cached[T]{asked: c.Now(), ready: make(chan struct{})}
	c.entries[key] = e
	return e, true
}

func (c *Cache[T]) finish(key string, e *cached[T], late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.done = true
	switch {
	case e.err == nil && c.FromAsked && c.Life > 0:
		e.until = e.asked.Add(c.Life)
	case e.err == nil && c.Life > 0:
		e.until = c.Now().Add(c.Life)
	case e.err != nil && c.ErrorLife > 0:
		e.until = c.Now().Add(c.ErrorLife)
	case e.err != nil && c.entries[key] == e:
		delete(c.entries, key)
	}
	if late && e.err != nil && c.Quiet {
		c.silent = e
	}
	close(e.ready)
}
