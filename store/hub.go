package store

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// backlog is how many readings wait for a follower before it has to read for itself.
const backlog = 8

// hub reads the streams of all tasks that are followed in this process, and hands what it read to their followers. It hears of new events
// over one subscription, and looks by itself every Store.slice, for a hint may get lost. While somebody follows it has one goroutine,
// which alone talks to Redis.
//
// It waits for no follower and keeps no errors: a follower who cannot take what was read, a task that ended without a mark, a Redis that
// does not answer all come to the same. The channel is closed, and the follower looks for itself what there is.
type hub struct {
	*db
	poll time.Duration // how often streams are read without a hint

	mu    sync.Mutex
	feeds map[string]*feed // by task
	users int              // who have joined and not left
	stop  context.CancelFunc
}

// feed is one task that is followed. hub.mu guards it.
type feed struct {
	last      string // what was read last, hence handed out
	followers map[chan []Event]bool
}

// join gives what is appended to a task's stream, in order, from about the event after on: what was appended before is the caller's to
// read. A closed channel asks to read again, and to join anew. leave must be called, once.
func (h *hub) join(id, after string) (news <-chan []Event, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users++; h.users == 1 {
		ctx, stop := context.WithCancel(context.Background()) // it outlives whoever comes first
		h.stop = stop
		go h.run(ctx)
	}
	f := h.feeds[id]
	if f == nil {
		f = &feed{last: after, followers: map[chan []Event]bool{}}
		h.feeds[id] = f
	}
	if later(f.last, after) { // what another began after may be no event at all, and far ahead: it came from a browser
		f.last = after
	}
	mine := make(chan []Event, backlog)
	f.followers[mine] = true
	return mine, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(f.followers, mine)
		if len(f.followers) == 0 && h.feeds[id] == f {
			delete(h.feeds, id)
		}
		if h.users--; h.users == 0 {
			h.stop()
		}
	}
}

// run hears and reads until the last follower has left. The next one may be there before it returns: what two of them read is the same.
func (h *hub) run(ctx context.Context) {
	sub := h.blocking.Subscribe(ctx, h.key.news())
	defer sub.Close()
	hints := sub.ChannelWithSubscriptions()
	look := time.NewTicker(h.poll)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			h.read(ctx, h.followed(nil))
		case hint, open := <-hints:
			if !open { // the client was closed: reading will tell
				hints = nil
				continue
			}
			h.read(ctx, h.followed(gather(hint, hints)))
		}
	}
}

// gather takes the hints that are there by now, for a task that has many is read once. Nil stands for every task: a subscription, first
// or after a reconnect, may have come after the hint it was for.
func gather(hint any, more <-chan any) map[string]bool {
	ids := map[string]bool{}
	for {
		m, ok := hint.(*redis.Message)
		if !ok {
			return nil
		}
		ids[m.Payload] = true
		select {
		case hint, ok = <-more:
			if !ok {
				return ids
			}
		default:
			return ids
		}
	}
}

// followed are those of the tasks, or of all, that somebody follows, with where to go on.
func (h *hub) followed(ids map[string]bool) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := map[string]string{}
	for id, f := range h.feeds {
		if ids == nil || ids[id] {
			last[id] = f.last
		}
	}
	return last
}

// read reads what is new of some tasks, all in one round trip, and again those that have more.
func (h *hub) read(ctx context.Context, last map[string]string) {
	for len(last) > 0 {
		states, streams := map[string]*redis.StringCmd{}, map[string]*redis.XMessageSliceCmd{}
		_, _ = h.blocking.Pipelined(ctx, func(p redis.Pipeliner) error {
			for id, after := range last {
				from := "-"
				if after != "" {
					from = "(" + after
				}
				states[id] = p.HGet(ctx, h.key.task(id), "state") // before the stream, as in follow
				streams[id] = p.XRangeN(ctx, h.key.events(id), from, "+", batch)
			}
			return nil
		}) // each command has its own error
		if ctx.Err() != nil {
			return
		}
		for id := range last {
			events, err := decodeEvents(streams[id].Val()), streams[id].Err()
			state := State(states[id].Val()) // empty: it is gone, or could not be read
			if err != nil || len(events) == 0 && (state == "" || state == Ended) {
				h.dismiss(id)
			} else {
				h.hand(id, events)
			}
			if len(events) < batch {
				delete(last, id)
				continue
			}
			last[id] = events[batch-1].ID
		}
	}
}

// hand gives what was read to all who follow the task, and lets go of those who have too much before them.
func (h *hub) hand(id string, events []Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[id]
	if f == nil || len(events) == 0 {
		return
	}
	f.last = events[len(events)-1].ID
	for news := range f.followers {
		select {
		case news <- events:
		default:
			delete(f.followers, news)
			close(news)
		}
	}
}

// dismiss lets go of all who follow a task.
func (h *hub) dismiss(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[id]
	if f == nil {
		return
	}
	delete(h.feeds, id)
	for news := range f.followers {
		delete(f.followers, news)
		close(news)
	}
}
