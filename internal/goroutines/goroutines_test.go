package goroutines

import "testing"

// A goroutine that waits is found by its function and its state, and one that ends is not waited for.
func TestAwait(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	for range 2 {
		go wait(hold)
	}
	never := func() bool { return false }
	if !Await(never, 2, "goroutines.wait(", "[chan receive") {
		t.Error("two goroutines wait")
	}
	if calls := 0; Await(func() bool { calls++; return calls > 2 }, 3, "goroutines.wait(") {
		t.Error("a third goroutine waits")
	}
	close(hold)
}

func wait(hold <-chan struct{}) { <-hold }
