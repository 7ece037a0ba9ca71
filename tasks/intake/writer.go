package intake

import (
	"context"
	"time"
)

// Writer passes the newest of many values to where writing is slow. It pauses between two writes and skips values that
// are overtaken.
type Writer[T comparable] struct {
	Value   func() T      // returns the newest value
	Refresh time.Duration // how often to read Value without a change; 0 for never
	// Write writes a value. It returns the time until the next write, or [NoMore], and whether the value is written. A
	// value that is not is written again, unless there is a newer one.
	Write func(T) (pause time.Duration, ok bool)

	changed chan struct{} // holds one token when there may be another value
	stop    context.CancelFunc
	done    chan struct{} // closed when no write is running
}

// NoMore is the pause after a write that was the last one.
const NoMore time.Duration = -1

// Start begins to write, after a pause and without last, which is written already. The writing ends with ctx or Close.
func (w *Writer[T]) Start(ctx context.Context, last T, pause time.Duration) {
	stopped, stop := context.WithCancel(ctx)
	w.stop = stop
	w.changed, w.done = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(w.done)
		defer stop()
		w.run(stopped, last, pause)
	}()
}

// Changed says that there may be another value. It never blocks, and does nothing before Start.
func (w *Writer[T]) Changed() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Done is closed when nothing is written any more. It is nil without Start.
func (w *Writer[T]) Done() <-chan struct{} { return w.done }

// Close ends the writing, and waits for a write that is running. It does nothing without Start.
func (w *Writer[T]) Close(ctx context.Context) error {
	if w.stop == nil {
		return nil
	}
	w.stop()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *Writer[T]) run(stop context.Context, last T, pause time.Duration) {
	var refresh <-chan time.Time
	if w.Refresh > 0 {
		ticker := time.NewTicker(w.Refresh)
		defer ticker.Stop()
		refresh = ticker.C
	}
	for ok := true; pause != NoMore; {
		select {
		case <-time.After(pause):
		case <-stop.Done():
			return
		}
		if v := w.Value(); v != last || !ok {
			last = v
			pause, ok = w.Write(v)
			continue
		}
		pause = 0
		select {
		case <-w.changed:
		case <-refresh:
		case <-stop.Done():
			return
		}
	}
}
