// Package await lets tests wait for what they can only look for, within a bound and with a message. Where there is a
// signal, wait for that instead.
package await

import (
	"context"
	"testing"
	"time"
)

// bound is how long Until waits. Only what never comes takes as long.
const bound = 3 * time.Minute

// The pauses between two looks, which double.
const (
	firstPause   = time.Millisecond
	longestPause = 50 * time.Millisecond
)

// Until waits until found returns true. After minutes it fails the test with what it was waiting for. Call it from the
// goroutine of the test.
func Until(t testing.TB, what string, found func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if !Holds(ctx, found) {
		t.Fatalf("waited in vain: %s", what)
	}
}

// Holds waits until found returns true, and returns false if ctx ends before.
func Holds(ctx context.Context, found func() bool) bool {
	for pause := firstPause; !found(); pause = min(2*pause, longestPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
	return true
}
