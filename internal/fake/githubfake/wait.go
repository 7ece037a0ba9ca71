package githubfake

import (
	"context"
	"errors"
	"fmt"
)

// ErrClosed is what Wait returns when the server was closed under it.
var ErrClosed = errors.New("githubfake: closed")

// Wait returns when f holds. f runs without any lock, at once and again after
// every change (a call arriving or answered, anything written, a delivery
// answered); it must not block. The error wraps the context's.
func (s *Server) Wait(ctx context.Context, f func(*Server) bool) error {
	for {
		// Taken before f looks: a change after this line closes this channel.
		s.mu.Lock()
		change := s.change
		s.mu.Unlock()
		if f(s) {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("wait for github: %w", context.Cause(ctx))
		case <-s.ctx.Done():
			return ErrClosed
		}
	}
}

// changed wakes all who wait.
func (s *Server) changed() {
	close(s.change)
	s.change = make(chan struct{})
}
