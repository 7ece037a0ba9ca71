package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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

// Follow gives the history after an event's ID and then what comes, until the end mark, or at once when the task has ended and nothing
// is left to read. The sequence ends with an error when there is one: ctx's, Redis', or [ErrNotFound]. Whoever breaks off goes on later
// with the last ID.
//
// Whatever is followed in this process is heard of over one subscription and read once for all who follow it (see hub). A caller that is
// slow holds up nobody, and misses nothing that the stream still has.
func (s *EventLog) Follow(ctx context.Context, id, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &follower{log: s, id: id, after: after, yield: yield}
		if after == "0" {
			f.after = ""
		}
		if err := f.follow(ctx); err != nil {
			f.yield(Event{}, fmt.Errorf("follow %s: %w", id, err))
		}
	}
}

// follower is one call of Follow, and used by its goroutine alone.
type follower struct {
	log   *EventLog
	id    string
	after string // the last event that was handed out; empty: none
	yield func(Event, error) bool
	over  bool // the caller has heard enough, or the end
}

// follow reads for itself what is there, and then lets the hub read. It starts over whenever the hub has let go of it.
func (f *follower) follow(ctx context.Context) error {
	for {
		// The state before the stream: what was appended until the end is then in the stream.
		state, err := f.log.state(ctx, f.id)
		if err == nil {
			err = f.catchUp(ctx)
		}
		if err != nil || f.over || state == Ended {
			return err
		}
		if err := f.listen(ctx); err != nil || f.over {
			return err
		}
	}
}

// catchUp reads until nothing is left.
func (f *follower) catchUp(ctx context.Context) error {
	for {
		events, err := f.log.Read(ctx, f.id, f.after, batch)
		if err != nil {
			return err
		}
		f.emit(events)
		if f.over || len(events) < batch {
			return nil
		}
	}
}

// listen hands out what the hub reads, until the hub says that we have to look for ourselves.
func (f *follower) listen(ctx context.Context) error {
	news, leave := f.log.hub.join(f.id, f.after)
	defer leave()
	// What came after our own reading may have been read for the others before we joined them.
	if err := f.catchUp(ctx); err != nil {
		return err
	}
	for !f.over {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case events, more := <-news:
			if !more {
				return nil
			}
			f.emit(events)
		}
	}
	return nil
}

// emit hands out what the caller does not have yet.
func (f *follower) emit(events []Event) {
	for _, e := range events {
		if f.over {
			return
		}
		if !later(e.ID, f.after) {
			continue
		}
		f.after = e.ID
		f.over = !f.yield(e, nil) || e.End
	}
}

// later tells whether an event comes after another in its stream; every event does after "".
func later(id, than string) bool {
	ms1, seq1 := eventTime(id)
	ms2, seq2 := eventTime(than)
	return than == "" || ms1 > ms2 || ms1 == ms2 && seq1 > seq2
}

// eventTime splits an event's ID, which has been checked where it came from outside.
func eventTime(id string) (ms, seq uint64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(first, 10, 64)
	seq, _ = strconv.ParseUint(second, 10, 64)
	return ms, seq
}

func (s *db) state(ctx context.Context, id string) (State, error) {
	state, err := s.redis.HGet(ctx, s.key.task(id), "state").Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return State(state), err
}
