package store

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// hints passes published hints to whatever waits for them in this process, over one subscription. A hint only says
// that there may be something to read: listeners read Redis when they get one, and from time to time without one.
//
// While anything listens, hints has one goroutine.
type hints struct {
	redis    Client
	poll     time.Duration // how often waitFor looks without a hint
	channels []string

	mu        sync.Mutex
	listeners map[subject]map[chan struct{}]bool
	users     int
	stop      context.CancelFunc
}

// subject is what a hint is about: a task, a thread or a key, depending on the channel.
type subject struct{ channel, name string }

func newHints(r Client, poll time.Duration, channels ...string) *hints {
	return &hints{redis: r, poll: poll, channels: channels, listeners: map[subject]map[chan struct{}]bool{}}
}

// listen returns a channel with a token when there was a hint about one of the subjects since the last receive. It also
// gets a token whenever the subscription begins, because earlier hints may have been missed. The caller calls leave
// once.
func (h *hints) listen(about ...subject) (hinted <-chan struct{}, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	mine := make(chan struct{}, 1)
	for _, s := range about {
		if h.listeners[s] == nil {
			h.listeners[s] = map[chan struct{}]bool{}
		}
		h.listeners[s][mine] = true
	}
	if h.users++; h.users == 1 {
		ctx, stop := context.WithCancel(context.Background()) // outlives the first listener's context
		h.stop = stop
		go h.run(ctx)
	}
	return mine, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, s := range about {
			if delete(h.listeners[s], mine); len(h.listeners[s]) == 0 {
				delete(h.listeners, s)
			}
		}
		if h.users--; h.users == 0 {
			h.stop()
		}
	}
}

// run passes hints until the last listener has left. Its successor may start before it returns.
func (h *hints) run(ctx context.Context) {
	sub := subscribe(ctx, h.redis, h.channels...)
	defer sub.Close()
	arrived := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case hint, open := <-arrived:
			switch hint := hint.(type) {
			case *redis.Message:
				h.pass(subject{hint.Channel, hint.Payload})
			case *redis.Subscription: // the first one, or after a reconnect
				h.passAll(hint.Channel)
			}
			if !open { // the client was closed, and its users find out from their reads
				return
			}
		}
	}
}

func (h *hints) pass(s subject) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wake(h.listeners[s])
}

func (h *hints) passAll(channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s, list := range h.listeners {
		if s.channel == channel {
			wake(list)
		}
	}
}

func wake(listeners map[chan struct{}]bool) {
	for l := range listeners {
		select {
		case l <- struct{}{}:
		default: // it has a token
		}
	}
}

// waitFor calls look at once, whenever there is a hint about the subject, and every poll in case a hint was lost. It
// returns when look returns true, or with ctx's error when ctx ends.
func (h *hints) waitFor(ctx context.Context, channel, name string, look func() bool) error {
	hinted, leave := h.listen(subject{channel, name})
	defer leave()
	tick := time.NewTicker(h.poll)
	defer tick.Stop()
	for !look() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-hinted:
		}
	}
	return nil
}
