package intake

import (
	"context"
	"fmt"
	"time"
)

// Limiter is a set of token buckets that the whole fleet shares.
type Limiter interface {
	// Allow takes a token from the bucket with a name, which gains one token per every and holds at most burst. It does not block: a
	// wait of 0 means that a token was taken; anything else is how long until there is one.
	Allow(ctx context.Context, name string, every time.Duration, burst int) (wait time.Duration, err error)
}

// How fast one asker may send requests. People stay below these limits; two bots that answer each other do not.
const (
	requestEvery = 30 * time.Second
	requestBurst = 20
	noticeEvery  = 10 * time.Minute
)

// TooFast is said once to an asker whose requests are skipped.
const TooFast = "Too many requests in this thread; I skipped this one. Try again in a minute."

// Pacer limits how fast requests come. The zero value limits nothing.
type Pacer struct{ Limiter Limiter }

// AllowRequest reports whether the asker with that name may make one more request now.
func (p Pacer) AllowRequest(ctx context.Context, asker string) (bool, error) {
	return p.allow(ctx, asker, requestEvery, requestBurst)
}

// AllowNotice reports whether to say that requests come too fast: once every 10 minutes under a name.
func (p Pacer) AllowNotice(ctx context.Context, name string) (bool, error) {
	return p.allow(ctx, name, noticeEvery, 1)
}

func (p Pacer) allow(ctx context.Context, name string, every time.Duration, burst int) (bool, error) {
	if p.Limiter == nil {
		return true, nil
	}
	wait, err := p.Limiter.Allow(ctx, name, every, burst)
	if err != nil {
		return false, fmt.Errorf("pace requests: %w", err)
	}
	return wait == 0, nil
}
