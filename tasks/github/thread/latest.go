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
	text   atomic.Pointer[string]
	writer *intake.Writer
}

// Put never blocks.
func (l *Latest) Put(text string) {
	l.text.Store(&text)
	l.writer.Changed()
}

// Close ends the writing, and waits for a write that is running.
func (l *Latest) Close(ctx context.Context) error { return l.writer.Close(ctx) }

// ShowLatest returns a Latest whose texts show writes at intervals. The first failure is logged.
func ShowLatest(
	ctx context.Context, interval time.Duration, log *slog.Logger, show func(context.Context, string) error,
) *Latest {
	l := &Latest{}
	l.text.Store(new(string))
	warned := false
	write := func(text string) (time.Duration, bool) {
		// The writes use ctx, which Close does not end: a cancelled one could still arrive, after the final text.
		err := show(ctx, text)
		if err != nil && !warned && ctx.Err() == nil {
			warned = true
			log.Warn("show progress", "err", err)
		}
		return interval, err == nil
	}
	l.writer = intake.StartWriter(ctx, intake.Writing[string]{
		Value: func() string { return *l.text.Load() }, Write: write,
	})
	return l
}
