// Package fetch lets goroutines share what one of them fetches, such as a token.
package fetch

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// Limit is how long one call may take.
	Limit = 30 * time.Second
	// FailurePause is how long callers usually share a failure.
	FailurePause = 5 * time.Second
)

// Shared gives concurrent callers the result of one call, for which each waits as long as its own context allows. It is
// safe for concurrent use.
type Shared[T any] struct {
	// Get also returns how long Wait may return its result or error again. Its context does not depend on a caller's,
	// so that one caller cannot cancel it for the others.
	Get func(context.Context) (T, time.Duration, error)

	mu    sync.Mutex
	call  *call[T]  // in progress, or nil
	last  *call[T]  // the last one that ended, or nil
	until time.Time // when last expires
}

type call[T any] struct {
	done  chan struct{} // closed at the end
	value T
	err   error
}

// Wait returns the last result of Get until it expires, and otherwise the result of a call that ends after Wait began.
func (s *Shared[T]) Wait(ctx context.Context) (value T, err error) {
	s.mu.Lock()
	c := s.call
	switch {
	case c != nil:
	case s.last != nil && time.Now().Before(s.until):
		c = s.last
	default:
		c = &call[T]{done: make(chan struct{})}
		s.call = c
		go s.run(c)
	}
	s.mu.Unlock()
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
}

// Renew drops the last value if it is stale.
func (s *Shared[T]) Renew(stale func(T) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.call == nil && s.last != nil && s.last.err == nil && stale(s.last.value) {
		s.last = nil
	}
}

func (s *Shared[T]) run(c *call[T]) {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	life := FailurePause
	defer func() {
		if failed := recover(); failed != nil { // in a new goroutine it would end the process
			debug.PrintStack() // as the runtime would; the error does not say where it was
			c.err = fmt.Errorf("panic: %v", failed)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.call, s.last, s.until = nil, c, time.Now().Add(life)
		close(c.done)
	}()
	c.value, life, c.err = s.Get(ctx)
}
