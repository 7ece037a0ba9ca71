package thread

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/tasks/intake"
)

// Latest holds the newest text for a slow writer.
type Latest struct {
	text    atomic.Pointer[string]
	changed chan struct{}
	stop    context.CancelFunc
	done    chan struct{} // closed when no write is running
}

// Put never blocks.
func (l *Latest) Put(text string) {
	l.text.Store(&text)
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Close ends the writing, and waits for a write that is running.
func (l *Latest) Close(ctx context.Context) error {
	l.stop()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ShowLatest returns a Latest whose texts show writes at intervals. The first failure is logged.
func ShowLatest(
	ctx context.Context, interval time.Duration, log *slog.Logger, show func(context.Context, string) error,
) *Latest {
	stopped, stop := context.WithCancel(ctx)
	l := &Latest{changed: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	l.text.Store(new(string))
	warned := false
	write := func(text string) (time.Duration, bool) {
		// The writes use ctx, not stopped: a cancelled one could still arrive, after the final text.
		err := show(ctx, text)
		if err != nil && !warned && ctx.Err() == nil {
			warned = true
			log.Warn("show progress", "err", err)
		}
		return interval, err == nil
	}
	go func() {
		defer close(l.done)
		value := func() string { return *l.text.Load() }
		intake.Throttle[string]{Value: value, Changed: l.changed, Write: write}.Run(stopped, "", 0)
	}()
	return l
}
