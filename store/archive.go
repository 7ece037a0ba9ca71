package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// archive is the kind of value that a task's events become when the task has ended, and its field among the logs.
const archive = "events"

// streamLife is how long the stream of archived events stays, for readers that have begun with it.
const streamLife = 10 * time.Minute

// Archive moves the events of a task whose final message is posted from their stream, which is large, into one
// compressed value. Readers do not notice: the stream stays for some minutes, and ReadBefore and Follow read
// both. It returns [ErrStale] if the task is not posted. If other machines could not read the value, Archive leaves the
// events where they are.
func (s *EventLog) Archive(ctx context.Context, id string) error {
	old, err := s.archived(ctx, id)
	if err != nil {
		return fmt.Errorf("archive events of %s: %w", id, err)
	}
	events, err := s.Read(ctx, id, "", math.MaxInt32)
	if err != nil {
		return fmt.Errorf("archive events of %s: %w", id, err)
	}
	var parts [][]byte
	all := appendNewer(old, events)
	for _, e := range all[max(0, len(all)-s.most):] { // as many as a stream keeps
		if !e.End { // a retry removes the mark
			parts = append(parts, []byte(e.ID), e.Data)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	value, err := s.values.keep(ctx, archive, id, join(parts...))
	if err != nil {
		return fmt.Errorf("archive events of %s: %w", id, err)
	}
	if string(value[:1]) == pointer && !s.values.bucket.Shared() {
		s.values.discard(ctx, string(value))
		return nil
	}
	r, err := s.run(ctx, "archive", id, value, s.retention.Milliseconds(), streamLife.Milliseconds())
	if err != nil {
		s.values.discardUnused(ctx, value, err)
		return fmt.Errorf("archive events of %s: %w", id, err)
	}
	s.values.replace(ctx, r.text(1))
	return nil
}

// archived returns the archived events of a task, oldest first.
func (s *EventLog) archived(ctx context.Context, id string) ([]Event, error) {
	value, err := s.redis.HGet(ctx, s.key("log", id), archive).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.unpackEvents(ctx, value)
}

func (s *EventLog) unpackEvents(ctx context.Context, value string) ([]Event, error) {
	data, err := s.values.fetch(ctx, value)
	if err != nil {
		return nil, err
	}
	parts, err := split(data)
	if err != nil {
		return nil, err
	}
	var events []Event
	for pair := range slices.Chunk(parts, 2) {
		if len(pair) < 2 {
			return nil, ErrDamaged
		}
		events = append(events, Event{ID: string(pair[0]), Data: pair[1]})
	}
	return events, nil
}

// appendNewer appends the events of a stream that come after those that were archived.
func appendNewer(archived, stream []Event) []Event {
	last := ""
	if n := len(archived); n > 0 {
		last = archived[n-1].ID
	}
	i := slices.IndexFunc(stream, func(e Event) bool { return later(e.ID, last) })
	if i < 0 {
		return archived
	}
	return append(archived, stream[i:]...)
}

// earlier returns the events before an event's ID, or all for "".
func earlier(events []Event, than string) []Event {
	return slices.DeleteFunc(events, func(e Event) bool { return than != "" && !later(than, e.ID) })
}

// ReadBefore returns the latest events before an event's ID, oldest first, for paging back; "" starts at the end. more
// reports whether there are older events. limit must be positive.
func (s *EventLog) ReadBefore(
	ctx context.Context, id, before string, limit int,
) (events []Event, more bool, err error) {
	if !ValidEventID(before) {
		return nil, false, fmt.Errorf("read events of %s: %q is no event ID", id, before)
	}
	from := "+"
	if before != "" {
		from = "(" + before
	}
	var stream *redis.XMessageSliceCmd
	var value *redis.StringCmd
	err = s.pipelined(ctx, func(p redis.Pipeliner) error {
		stream = p.XRevRangeN(ctx, s.key("events", id), from, "-", int64(limit)+1)
		value = p.HGet(ctx, s.key("log", id), archive)
		return nil
	})
	if err := cmp.Or(err, stream.Err()); err != nil && !errors.Is(err, redis.Nil) {
		return nil, false, fmt.Errorf("read events of %s: %w", id, err)
	}
	entries := stream.Val()
	slices.Reverse(entries)
	events = decodeEvents(entries)
	if len(events) <= limit && value.Val() != "" {
		old, err := s.unpackEvents(ctx, value.Val())
		if err != nil {
			return nil, false, fmt.Errorf("read events of %s: %w", id, err)
		}
		events = appendNewer(earlier(old, before), events)
	}
	if more = len(events) > limit; more {
		events = events[len(events)-limit:]
	}
	return events, more, nil
}
