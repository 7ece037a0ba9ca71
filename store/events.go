package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	maxEvent = 16 << 10 // bytes
	batch    = 100      // events per read
)

// EventLog holds the events of tasks.
type EventLog struct {
	*db
	hub *hub
}

func newEventLog(d *db) *EventLog {
	return &EventLog{d, &hub{db: d, poll: 2 * time.Second, feeds: map[string]*feed{}}}
}

// Event is one entry of a task's stream.
type Event struct {
	ID   string          // its place in the stream: what comes after it is asked for with this
	Data json.RawMessage // opaque; nil for the end mark. Followers share it: it must not be changed
	End  bool            // the task has ended; nothing follows, unless it is tried again
}

// Append adds to the running task's events, in order, all or none. The oldest go when there are more than EventCap. [ErrTooLarge] when
// one exceeds 16 KiB, [ErrStale] when the task is not ours any more or has ended.
func (c *Claim) Append(ctx context.Context, events ...json.RawMessage) error {
	args := []any{c.ID(), c.fence, c.store.cfg.EventCap}
	for _, e := range events {
		if len(e) > maxEvent {
			return fmt.Errorf("append to %s: event of %d bytes, limit %d: %w", c.ID(), len(e), maxEvent, ErrTooLarge)
		}
		args = append(args, []byte(e))
	}
	if _, err := c.store.run(ctx, "append", args...); err != nil {
		return fmt.Errorf("append to %s: %w", c.ID(), err)
	}
	return nil
}

// Read reads what is there after an event's ID, oldest first; "" or "0" is from the beginning, limit 0 is 100. A task without events,
// or one that does not exist, has none.
func (s *EventLog) Read(ctx context.Context, id, after string, limit int) ([]Event, error) {
	if limit <= 0 {
		limit = batch
	}
	from := "-"
	if after != "" && after != "0" {
		if err := checkEventID(after); err != nil {
			return nil, fmt.Errorf("read events of %s: %w", id, err)
		}
		from = "(" + after
	}
	entries, err := s.redis.XRangeN(ctx, s.key.events(id), from, "+", int64(limit)).Result()
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", id, err)
	}
	return decodeEvents(entries), nil
}

// ReadBefore reads the latest events before an event's ID, oldest first, for whoever pages back; "" is from the end. more tells that there
// are older ones still, as far as the stream goes back. limit must be positive.
func (s *EventLog) ReadBefore(ctx context.Context, id, before string, limit int) (events []Event, more bool, err error) {
	from := "+"
	if before != "" {
		if err := checkEventID(before); err != nil {
			return nil, false, fmt.Errorf("read events of %s: %w", id, err)
		}
		from = "(" + before
	}
	entries, err := s.redis.XRevRangeN(ctx, s.key.events(id), from, "-", int64(limit)+1).Result()
	if err != nil {
		return nil, false, fmt.Errorf("read events of %s: %w", id, err)
	}
	if more = len(entries) > limit; more {
		entries = entries[:limit]
	}
	slices.Reverse(entries)
	return decodeEvents(entries), more, nil
}

func decodeEvents(entries []redis.XMessage) []Event {
	events := make([]Event, len(entries))
	for i, e := range entries {
		data, _ := e.Values["data"].(string)
		events[i] = Event{ID: e.ID, Data: raw(data), End: e.Values["end"] != nil}
	}
	return events
}

// checkEventID: the ID may come from a browser (Last-Event-ID).
func checkEventID(id string) error {
	ms, seq, _ := strings.Cut(id, "-")
	_, err1 := strconv.ParseUint(ms, 10, 64)
	_, err2 := strconv.ParseUint(seq, 10, 64)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%q is no event ID", id)
	}
	return nil
}
