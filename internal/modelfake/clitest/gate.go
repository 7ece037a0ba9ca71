package clitest

import (
	"runtime"
	"testing"
	"time"
)

// places are as many as processors: more CLIs at once only make each other slow, and a start can then take as long as
// tests may wait for it.
var places = make(chan struct{}, runtime.NumCPU())

// Enter waits for a place for one CLI, and leave gives it back. A test that needs several CLIs at once gets its second
// one without a place, after a while.
func Enter(tb testing.TB) (leave func()) {
	tb.Helper()
	select {
	case places <- struct{}{}:
		return func() { <-places }
	case <-time.After(5 * time.Minute):
		return func() {}
	}
}
