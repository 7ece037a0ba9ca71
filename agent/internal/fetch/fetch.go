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
	// FailurePause is how long a failure is usually the answer for all.
	FailurePause = 5 * time.Second
)

// Shared lets all who need something at the same time wait for one call, each as long as its own context allows. It is safe for
// concurrent use.
type Shared[T any] struct {
	// Get also returns how long its result, or its error, is the answer for later calls of Wait. Its context is not that
	// of a request, whose end is no reason for others to fail.
	Get func(context.Context) (T, time.Duration, error)

	mu    sync.Mutex
	call  *call[T]  // under way; nil: none
	last  *call[T]  // that ended last
	until time.Time // when last counts no more
}

type call[T any] struct {
	done  chan struct{} // closed at the end
	value T
	err   error
}

// Wait returns the last result of Get as long as it counts, and otherwise that of a call which ends after Wait was called.
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

// Renew makes the last value count no more if stale says so.
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
