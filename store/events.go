package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	maxEvent = 16 << 10 // bytes
	batch    = 100      // events per read of a follower
)

// Event is one entry of a task's stream.
type Event struct {
	ID   string          // its place in the stream: what comes after it is asked for with this
	Data json.RawMessage // opaque; nil for the end mark
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

// Events reads what is there after an event's ID, oldest first; "" or "0" is from the beginning, limit 0 is 100. A task without events,
// or one that does not exist, has none.
func (s *Store) Events(ctx context.Context, id, after string, limit int) ([]Event, error) {
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

// Follow gives the history after an event's ID and then what comes, until the end mark, or at once when the task has ended and nothing
// is left to read. The sequence ends with an error when there is one: ctx's, noticed within 2 s, Redis', or [ErrNotFound]. Whoever
// breaks off goes on later with the last ID. Each live follower occupies one connection of Config.Blocking.
func (s *Store) Follow(ctx context.Context, id, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if after == "" {
			after = "0"
		}
		// emit hands a batch out; false = the caller has heard enough, or the end.
		emit := func(events []Event) bool {
			for _, e := range events {
				after = e.ID
				if !yield(e, nil) || e.End {
					return false
				}
			}
			return true
		}
		for {
			// The state before the stream: what was appended until the end is then in the stream.
			state, err := s.state(ctx, id)
			for got := batch; err == nil && got == batch; {
				var events []Event
				if events, err = s.Events(ctx, id, after, batch); err == nil && !emit(events) {
					return
				}
				got = len(events)
			}
			if err == nil && state == Ended {
				return
			}
			// Live, without asking for the state again as long as something comes.
			for got := 1; err == nil && got > 0; {
				var events []Event
				if events, err = s.wait(ctx, id, after); err == nil && !emit(events) {
					return
				}
				got = len(events)
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("follow %s: %w", id, err))
				return
			}
		}
	}
}

// wait blocks for new events until there are some or a slice of time has passed.
func (s *Store) wait(ctx context.Context, id, after string) ([]Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	streams, err := s.blocking.XRead(ctx, &redis.XReadArgs{
		Streams: []string{s.key.events(id), after}, Count: batch, Block: s.slice,
	}).Result()
	if errors.Is(err, redis.Nil) || err == nil && len(streams) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeEvents(streams[0].Messages), nil
}

func (s *Store) state(ctx context.Context, id string) (State, error) {
	state, err := s.redis.HGet(ctx, s.key.task(id), "state").Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return State(state), err
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
