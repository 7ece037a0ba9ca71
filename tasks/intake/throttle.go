package intake

import (
	"context"
	"time"
)

// Throttle passes the newest of many values to a slow writer. It pauses between two writes and skips values that are
// overtaken. Only Run uses it.
type Throttle[T comparable] struct {
	Value   func() T         // returns the newest value
	Changed <-chan struct{}  // receives when Value has changed
	Refresh <-chan time.Time // when to read Value without a change; nil for never
	// Write writes a value. It returns the time until the next write, and whether the value is written. A value that is
	// not is written again, unless there is a newer one.
	Write func(T) (pause time.Duration, ok bool)
}

// Run writes values until stop ends, after a pause and without last, which is written already. It waits for a running
// write.
func (t Throttle[T]) Run(stop context.Context, last T, pause time.Duration) {
	for ok := true; ; {
		select {
		case <-time.After(pause):
		case <-stop.Done():
			return
		}
		if v := t.Value(); v != last || !ok {
			last = v
			pause, ok = t.Write(v)
			continue
		}
		pause = 0
		select {
		case <-t.Changed:
		case <-t.Refresh:
		case <-stop.Done():
			return
		}
	}
}
