// Package await lets tests wait for what they can only look for, within a bound and with a message. Where there is a
// signal, wait for that instead.
package await

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Bound is how long a test waits. Only what never comes takes as long, also on a slow or busy machine.
const Bound = 10 * time.Minute

// The pauses between two looks, which double.
const (
	firstPause   = time.Millisecond
	longestPause = 50 * time.Millisecond
)

// Context returns the test's context, bounded by Bound.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), Bound, errInVain)
	t.Cleanup(cancel)
	return ctx
}

var errInVain = errors.New("waited in vain")

// Until waits until found returns true. After Bound it fails the test with what it was waiting for. Call it from the
// goroutine of the test.
func Until(t testing.TB, what string, found func() bool) {
	t.Helper()
	if !Holds(Context(t), found) {
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
