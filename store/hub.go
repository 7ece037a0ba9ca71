package store

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// backlog is the number of reads that may be queued for a follower before the hub drops it.
const backlog = 8

// hub reads the streams of all tasks that are followed in this process and passes the events to their followers. One
// subscription announces new events. The hub also polls at times, because a hint may be lost. While anyone
// follows, it has one goroutine, and only that goroutine talks to Redis.
//
// The hub waits for no follower and keeps no errors. If a follower is too slow, a task ended without a mark, or Redis
// does not answer, the hub closes the follower's channel, and the follower reads the stream itself.
type hub struct {
	*conn
	blocking Client        // for the subscription and the reads
	poll     time.Duration // how often streams are read without a hint

	mu    sync.Mutex
	feeds map[string]*feed // by task
	users int              // followers that have joined and not left
	stop  context.CancelFunc
}

// feed is one followed task. hub.mu guards it.
type feed struct {
	last      string // ID of the last event that was read and passed on
	followers map[chan []Event]bool
}

// join returns the events that are appended to a task's stream after about the event after. The caller reads earlier
// events itself. If the channel is closed, the caller must read and join again. It must call leave exactly once.
func (h *hub) join(id, after string) (news <-chan []Event, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users++; h.users == 1 {
		ctx, stop := context.WithCancel(context.Background()) // outlives the first follower's context
		h.stop = stop
		go h.run(ctx)
	}
	f := h.feeds[id]
	if f == nil {
		f = &feed{last: after, followers: map[chan []Event]bool{}}
		h.feeds[id] = f
	}
	if later(f.last, after) { // another follower's after may be invented and far ahead: it came from a browser
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

// run subscribes and reads until the last follower has left. Its successor may start before it returns; both then read
// the same.
func (h *hub) run(ctx context.Context) {
	sub := subscribe(ctx, h.blocking, h.key.news())
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
			if !open { // the client was closed: the next read reports it
				hints = nil
				continue
			}
			h.read(ctx, h.followed(gather(hint, hints)))
		}
	}
}

// gather collects the pending hints, so that a task with many hints is read once. It returns nil for every task: a
// subscription, first or after a reconnect, may have missed hints.
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

// followed returns the given tasks (nil: all) that are followed, with the last event read of each.
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

// read reads the new events of some tasks in one round trip, and repeats that for tasks that have more.
func (h *hub) read(ctx context.Context, last map[string]string) {
	for len(last) > 0 {
		records, streams := map[string]*redis.SliceCmd{}, map[string]*redis.XMessageSliceCmd{}
		_, _ = h.blocking.Pipelined(ctx, func(p redis.Pipeliner) error {
			for id, after := range last {
				from := "-"
				if after != "" {
					from = "(" + after
				}
				records[id] = p.HMGet(ctx, h.key.task(id), "state", "early") // before the stream, as in follow and Read
				streams[id] = p.XRangeN(ctx, h.key.events(id), from, "+", batch)
			}
			return nil
		}) // each command has its own error
		if ctx.Err() != nil {
			return
		}
		for id := range last {
			record := reply(records[id].Val())
			events, err := joinEvents(record.text(1), last[id], streams[id].Val()), streams[id].Err()
			state := State(record.text(0)) // empty if the record is gone or could not be read
			if err != nil || len(events) == 0 && (state == "" || state == Ended) {
				h.dismiss(id)
			} else {
				h.hand(id, events)
			}
			if len(events) < batch {
				delete(last, id)
				continue
			}
			last[id] = events[len(events)-1].ID
		}
	}
}

// hand passes events to all followers of the task, and drops those whose backlog is full.
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

// dismiss drops all followers of a task.
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
