package intake

import (
	"context"
	"log/slog"
	"time"
)

// MaxBackground is how many calls of one Background may be under way.
const MaxBackground = 16

// Background runs calls in goroutines, at most MaxBackground at once. Make it with NewBackground.
type Background struct {
	running chan struct{}
	log     *slog.Logger
}

// NewBackground returns a Background that logs the calls it skips.
func NewBackground(log *slog.Logger) *Background {
	return &Background{running: make(chan struct{}, MaxBackground), log: log}
}

// Go calls do in a new goroutine, with ctx, and reports whether it did. A call that would be one too many is logged and skipped.
func (b *Background) Go(ctx context.Context, do func(context.Context)) bool {
	select {
	case b.running <- struct{}{}:
	default:
		b.log.Warn("background call skipped", "limit", MaxBackground)
		return false
	}
	b.start(ctx, do)
	return true
}

// GoWhenFree is Go, but waits until there are few enough calls. It reports false if ctx ends first.
func (b *Background) GoWhenFree(ctx context.Context, do func(context.Context)) bool {
	select {
	case b.running <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	b.start(ctx, do)
	return true
}

func (b *Background) start(ctx context.Context, do func(context.Context)) {
	go func() {
		defer func() { <-b.running }()
		do(ctx)
	}()
}

// RetryLimited repeats a call while it fails because of a rate limit, after the pauses that the service asks for. limited returns the
// pause that an error asks for. The pauses together last at most budget; each counts as a second at least, so that they come to an end.
func RetryLimited(ctx context.Context, budget time.Duration, limited func(error) (time.Duration, bool), call func() error) error {
	for {
		err := call()
		pause, ok := limited(err)
		if !ok {
			return err
		}
		if budget -= max(pause, time.Second); budget < 0 {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
