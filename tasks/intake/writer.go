package intake

import (
	"context"
	"time"
)

// Writer passes the newest of many values to where writing is slow. It pauses between two writes and skips values that
// are overtaken. A nil Writer writes nothing.
type Writer struct {
	changed chan struct{} // holds one token when there may be another value
	stop    context.CancelFunc
	done    chan struct{} // closed when no write is running
}

// Writing says what a [Writer] writes, and when.
type Writing[T comparable] struct {
	Value func() T // returns the newest value
	// Write writes a value. It returns the time until the next write, or [NoMore], and whether the value is written. A
	// value that is not is written again, unless there is a newer one.
	Write func(T) (pause time.Duration, ok bool)

	Refresh time.Duration // how often to read Value without a change; 0 for never
	Last    T             // what is written already
	Pause   time.Duration // before the first write
}

// NoMore is the pause after a write that was the last one.
const NoMore time.Duration = -1

// StartWriter begins to write. That ends with ctx or Close.
func StartWriter[T comparable](ctx context.Context, what Writing[T]) *Writer {
	stopped, stop := context.WithCancel(ctx)
	w := &Writer{make(chan struct{}, 1), stop, make(chan struct{})}
	go func() {
		defer close(w.done)
		defer stop()
		what.run(stopped, w.changed)
	}()
	return w
}

// Changed says that there may be another value. It never blocks.
func (w *Writer) Changed() {
	if w == nil {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Done is closed when nothing is written any more.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Close ends the writing, and waits for a write that is running.
func (w *Writer) Close(ctx context.Context) error {
	if w == nil {
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

func (w Writing[T]) run(stop context.Context, changed <-chan struct{}) {
	var refresh <-chan time.Time
	if w.Refresh > 0 {
		ticker := time.NewTicker(w.Refresh)
		defer ticker.Stop()
		refresh = ticker.C
	}
	last, pause := w.Last, w.Pause
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
		case <-changed:
		case <-refresh:
		case <-stop.Done():
			return
		}
	}
}
