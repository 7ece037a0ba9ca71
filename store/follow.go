package store

import (
	"context"
	"fmt"
	"iter"
)

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
