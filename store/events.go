package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	maxEvent = 16 << 10 // bytes
	batch    = 100      // events per read
	readers  = 4        // followers that read at a time
)

// EventLog holds the events of tasks.
type EventLog struct {
	*conn
	values    *values
	news      *hints
	reading   chan struct{} // a token for each follower that is reading
	most      int           // events kept of a task
	retention time.Duration // of a task's events once it is posted
}

// Event is one entry of a task's stream.
type Event struct {
	ID   string          // its place in the stream; pass it as after to read on from here
	Data json.RawMessage // opaque; nil for the end mark
	End  bool            // the task has ended; nothing follows unless it is retried
}

// Append adds to the running task's events, in order, all or none. The oldest events are dropped beyond EventCap, and
// beyond 4 MiB of all together.
// Append returns [ErrTooLarge] if an event exceeds 16 KiB, and [ErrStale] if the claim is lost or the task has ended.
func (c *Claim) Append(ctx context.Context, events ...json.RawMessage) error {
	args := []any{c.ID(), c.fence, c.store.cfg.EventCap}
	for _, e := range events {
		if len(e) > maxEvent {
			return fmt.Errorf("append to %s: event of %d bytes, limit %d: %w", c.ID(), len(e), maxEvent, ErrTooLarge)
		}
		args = append(args, []byte(e))
	}
	_, err := c.store.run(ctx, "append", args...)
	return wrapf(err, "append to %s", c.ID())
}

// Read returns the events of a task after an event's ID, oldest first. "" or "0" starts at the beginning; a limit of 0
// means 100. It returns nothing for a task that has no events or does not exist, or whose events were archived.
func (s *EventLog) Read(ctx context.Context, id, after string, limit int) ([]Event, error) {
	if limit <= 0 {
		limit = batch
	}
	events, _, err := s.read(ctx, id, after, limit)
	return events, err
}

// read is [EventLog.Read] with a limit. It also returns the task's state, or "" if it does not exist. The state is
// older than the events: if the task has ended, the stream has all of them.
func (s *EventLog) read(ctx context.Context, id, after string, limit int) ([]Event, State, error) {
	if !ValidEventID(after) {
		return nil, "", fmt.Errorf("read events of %s: %q is no event ID", id, after)
	}
	from := "-"
	if after != "" && after != "0" {
		from = "(" + after
	}
	var record *redis.SliceCmd
	var stream *redis.XMessageSliceCmd
	err := s.pipelined(ctx, func(p redis.Pipeliner) error {
		record = p.HMGet(ctx, s.key("task", id), "state")
		stream = p.XRangeN(ctx, s.key("events", id), from, "+", int64(limit))
		return nil
	})
	if err := cmp.Or(err, stream.Err()); err != nil {
		return nil, "", fmt.Errorf("read events of %s: %w", id, err)
	}
	return decodeEvents(stream.Val()), State(reply(record.Val()).text(0)), nil
}

func decodeEvents(entries []redis.XMessage) []Event {
	events := make([]Event, len(entries))
	for i, e := range entries {
		data, _ := e.Values["data"].(string)
		events[i] = Event{ID: e.ID, Data: raw(data), End: e.Values["end"] != nil}
	}
	return events
}

// ValidEventID reports whether id may be the ID of an event, or "" or "0", which come before all events. Check what
// comes from a browser (Last-Event-ID).
func ValidEventID(id string) bool {
	if id == "" || id == "0" {
		return true
	}
	ms, seq, _ := strings.Cut(id, "-")
	_, err1 := strconv.ParseUint(ms, 10, 64)
	_, err2 := strconv.ParseUint(seq, 10, 64)
	return err1 == nil && err2 == nil
}

// later reports whether an event comes after another in its stream; every event comes after "".
func later(id, than string) bool {
	ms1, seq1 := eventTime(id)
	ms2, seq2 := eventTime(than)
	return than == "" || ms1 > ms2 || ms1 == ms2 && seq1 > seq2
}

// eventTime splits an event's ID. IDs from outside have already been validated.
func eventTime(id string) (ms, seq uint64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(first, 10, 64)
	seq, _ = strconv.ParseUint(second, 10, 64)
	return ms, seq
}
