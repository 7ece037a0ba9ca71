package store

import (
	"cmp"
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

// Event is one entry of a task's stream. The stream begins with the run; the events before it are in the record.
type Event struct {
	ID   string          // its place in the stream; pass it as after to read on from here
	Data json.RawMessage // opaque; nil for the end mark. Followers share it, so do not change it
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
	if !ValidEventID(after) {
		return nil, fmt.Errorf("read events of %s: %q is no event ID", id, after)
	}
	from := "-"
	if after != "" && after != "0" {
		from = "(" + after
	}
	var early *redis.SliceCmd
	var stream *redis.XMessageSliceCmd
	err := s.pipelined(ctx, func(p redis.Pipeliner) error {
		early = p.HMGet(ctx, s.key.task(id), "early") // before the stream, into which they move
		stream = p.XRangeN(ctx, s.key.events(id), from, "+", int64(limit))
		return nil
	})
	if err := cmp.Or(err, stream.Err()); err != nil {
		return nil, fmt.Errorf("read events of %s: %w", id, err)
	}
	events := joinEvents(reply(early.Val()).text(0), after, stream.Val())
	return events[:min(limit, len(events))], nil
}

// joinEvents returns the events after an event's ID: those in the record that come after it, and what was read of the
// stream.
func joinEvents(early, after string, stream []redis.XMessage) []Event {
	events := slices.DeleteFunc(earlyEvents(early), func(e Event) bool { return !later(e.ID, after) })
	return appendNewer(events, decodeEvents(stream))
}

// earlyEvents decodes the events in a record, oldest first. emit of common.lua describes them.
func earlyEvents(field string) (events []Event) {
	for _, line := range lines(field) {
		id, data, _ := strings.Cut(line, " ")
		events = append(events, Event{ID: id, Data: raw(data)})
	}
	return events
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

// Follow yields the events after an event's ID and then new ones as they arrive. It stops at the end mark, or when the
// task has ended and nothing is left to read. An error (ctx's, Redis' or [ErrNotFound]) is the last element. A caller
// that breaks off can continue later with the last ID.
//
// A process uses one subscription for everything that it follows, and reads each stream once for all followers (see
// hub). A slow caller does not delay others, and misses nothing that the stream still has.
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

// follower is one call of Follow. Only its goroutine uses it.
type follower struct {
	log   *EventLog
	id    string
	after string // the last event that was yielded; empty if none
	yield func(Event, error) bool
	over  bool // the caller has stopped, or the end was reached

	archive bool // it has read the archived events
}

// follow reads the existing events itself and then lets the hub read. It starts over whenever the hub drops it.
func (f *follower) follow(ctx context.Context) error {
	for {
		// Read the state before the stream: if the task has ended, the stream then has all of its events.
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

// catchUp reads what was archived, once, and until the stream has nothing more.
func (f *follower) catchUp(ctx context.Context) error {
	if !f.archive {
		events, err := f.log.archived(ctx, f.id)
		if err != nil {
			return err
		}
		f.archive = true
		f.emit(events)
	}
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

// listen yields what the hub reads, until the hub drops this follower.
func (f *follower) listen(ctx context.Context) error {
	news, leave := f.log.hub.join(f.id, f.after)
	defer leave()
	// The hub may have read events for other followers after our own read and before we joined.
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

// emit yields the events that the caller does not have yet.
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

func (s *db) state(ctx context.Context, id string) (State, error) {
	state, err := s.redis.HGet(ctx, s.key.task(id), "state").Result()
	if errors.Is(err, redis.Nil) {
		err = ErrNotFound
	}
	return State(state), err
}

const (
	maxLog   = 5 << 20 // bytes of a part
	logParts = 4       // kept per log: a task may move between workers many times
)

// LogPart is the part of a log that one run wrote.
type LogPart struct {
	Fence int64  // of the run's claim: later runs have greater ones
	Data  []byte // opaque
}

// SaveLog stores what this claim's run wrote to one of the task's logs, by a name such as "log". Unlike the other
// steps of a holder it also works after the task has ended or was taken over, because it only replaces its own part.
// The part lives for Retention, like the record. Each log keeps its latest 4 parts. SaveLog returns [ErrTooLarge]
// beyond 5 MiB and [ErrNotFound] if the task is gone.
func (c *Claim) SaveLog(ctx context.Context, name string, data []byte) error {
	return c.saveLog(ctx, name, data, logParts)
}

// SaveLatest is SaveLog for a log of which only the latest part is kept, and which a run may save repeatedly.
func (c *Claim) SaveLatest(ctx context.Context, name string, data []byte) error {
	return c.saveLog(ctx, name, data, 1)
}

func (c *Claim) saveLog(ctx context.Context, name string, data []byte, parts int) error {
	if len(data) > maxLog {
		return fmt.Errorf("save log of %s: %d bytes, limit %d: %w", c.ID(), len(data), maxLog, ErrTooLarge)
	}
	value, err := c.store.keep(ctx, log, c.ID(), data)
	if err != nil {
		return fmt.Errorf("save log of %s: %w", c.ID(), err)
	}
	r, err := c.store.run(ctx, "savelog", c.ID(), c.fence, name, value, parts, c.store.cfg.Retention.Milliseconds())
	if err != nil {
		c.store.discardUnused(ctx, value, err)
		return fmt.Errorf("save log of %s: %w", c.ID(), err)
	}
	for i := range r[1:] {
		c.store.replace(ctx, r.text(i+1))
	}
	return nil
}

// Log reads the stored parts of one of a task's logs in the order of its runs. It returns [ErrNotFound] if no part is
// stored.
func (s *Store) Log(ctx context.Context, id, name string) ([]LogPart, error) {
	fields, err := s.redis.HKeys(ctx, s.key.log(id)).Result()
	if err != nil {
		return nil, fmt.Errorf("read log of %s: %w", id, err)
	}
	var parts []LogPart
	for _, field := range fields {
		fence, of, _ := strings.Cut(field, " ")
		if of != name {
			continue
		}
		value, err := s.redis.HGet(ctx, s.key.log(id), field).Result()
		if errors.Is(err, redis.Nil) { // a later run's part replaced it
			continue
		}
		var data []byte
		if err == nil {
			data, err = s.fetch(ctx, value)
		}
		if err != nil {
			return nil, fmt.Errorf("read log of %s: %w", id, err)
		}
		parts = append(parts, LogPart{Fence: int64(number(fence)), Data: data})
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("read log of %s: %w", id, ErrNotFound)
	}
	slices.SortFunc(parts, func(a, b LogPart) int { return cmp.Compare(a.Fence, b.Fence) })
	return parts, nil
}
