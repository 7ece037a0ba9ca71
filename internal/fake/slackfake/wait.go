package slackfake

import (
	"context"
	"fmt"
)

// Wait returns nil as soon as the predicate holds, or the cause of ctx if that ends first. The predicate is asked at
// once and after every change (a message, an edit, a reaction, a call, a sent event); it may call any method of the
// server that does not wait itself. A change becomes visible before the client has its answer.
func (s *Server) Wait(ctx context.Context, done func(*Server) bool) error {
	for {
		// The channel is taken before the look, so that no change falls between the look and the wait.
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if done(s) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the workspace: %w", context.Cause(ctx))
		}
	}
}

// notify wakes all who Wait. The caller holds mu; they look once it is free, so a caller may notify before it is done.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
