// Package goroutines lets tests wait until goroutines wait for something, so that they need not sleep to see that
// nothing happens.
package goroutines

import (
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/await"
)

// Await returns true once n goroutines wait whose traces contain all marks: functions such as "(*Worker).Run(", which
// may be that of the test, or a state such as "[select". It returns false if over returns true before, or after two
// minutes.
//
// Reading all traces stops the whole program, so it looks less and less often.
func Await(over func() bool, n int, marks ...string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	found := false
	await.Holds(ctx, func() bool {
		if over() {
			return true
		}
		found = waiting(traces(), marks) >= n
		return found
	})
	return found
}

// traces returns the traces of all goroutines.
func traces() string {
	for size := 1 << 20; ; size *= 2 {
		text := make([]byte, size)
		if n := runtime.Stack(text, true); n < size {
			return string(text[:n])
		}
	}
}

// waiting counts the goroutines with these marks that wait.
func waiting(traces string, marks []string) (n int) {
	for trace := range strings.SplitSeq(traces, "\n\n") {
		state, _, _ := strings.Cut(trace, "\n")
		found := !strings.Contains(state, "[run") // running or runnable
		for _, mark := range marks {
			found = found && strings.Contains(trace, mark)
		}
		if found {
			n++
		}
	}
	return n
}
