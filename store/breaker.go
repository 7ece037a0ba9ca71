package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// awayFor is how long an object store that did not answer is left alone. Without it, every save of every run would wait
// for its own timeout.
const awayFor = 30 * time.Second

// breaker stops the calls of one direction to the object store for awayFor after one of them failed. Its zero value is
// ready, and its methods are safe for concurrent use.
type breaker struct {
	mu     sync.Mutex
	until  time.Time // no calls before
	reason error     // of the last failure
}

// try calls f unless the breaker is open, and opens it if f fails. It returns [ErrObjects] in both cases. A context
// that its caller cancelled is no failure of the object store.
func (b *breaker) try(ctx context.Context, f func() error) error {
	if err := b.open(); err != nil {
		return err
	}
	err := f()
	if err == nil {
		return nil
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		b.mu.Lock()
		b.until, b.reason = time.Now().Add(awayFor), err
		b.mu.Unlock()
	}
	return fmt.Errorf("%w: %w", ErrObjects, err)
}

// open returns why there are no calls now, or nil.
func (b *breaker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := time.Until(b.until); left > 0 {
		return fmt.Errorf("%w (not asked for another %s): %w", ErrObjects, left.Round(time.Second), b.reason)
	}
	return nil
}
