package cloud

import (
	"context"
	"sync"
	"time"
)

const (
	sharedLimit  = 30 * time.Second // of one call
	failurePause = 5 * time.Second  // in which a failure is the answer for all
)

// Shared lets all who need something at the same time wait for one call, each as long as its own context allows. The SDKs of Google and
// Azure keep tokens themselves, but wait for a new one under a lock. It is safe for concurrent use.
type Shared[T any] struct {
	Get func(context.Context) (T, error)

	mu     sync.Mutex
	call   *sharedCall[T] // under way; nil: none
	failed *sharedCall[T] // the last call, if it has failed
	until  time.Time      // when failed counts no more
}

type sharedCall[T any] struct {
	done  chan struct{} // closed at the end
	value T
	err   error
}

// Wait returns what a call has returned that ended after Wait was called, or a failure of the last seconds.
func (s *Shared[T]) Wait(ctx context.Context) (value T, err error) {
	s.mu.Lock()
	c := s.call
	switch {
	case c != nil:
	case s.failed != nil && time.Now().Before(s.until):
		c = s.failed
	default:
		c = &sharedCall[T]{done: make(chan struct{})}
		s.call, s.failed = c, nil
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

// run does not use the context of a request, whose end is no reason for the others to fail.
func (s *Shared[T]) run(c *sharedCall[T]) {
	ctx, cancel := context.WithTimeout(context.Background(), sharedLimit)
	defer cancel()
	c.value, c.err = s.Get(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call = nil
	if c.err != nil {
		s.failed, s.until = c, time.Now().Add(failurePause)
	}
	close(c.done)
}
