package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
)

// Follow yields the events after an event's ID and then new ones as they arrive. It stops at the end mark, or when the
// task has ended and nothing is left to read. An error (ctx's, Redis' or [ErrNotFound]) is the last element. A caller
// that breaks off can continue later with the last ID.
//
// The followers of a process share one subscription, which says that a task has new events. Each reads for itself, so
// a slow caller does not delay others, and misses nothing that the stream still has.
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
}

// follow yields what was archived, once, and then what the stream has and gets. It subscribes only if the task has not
// ended.
func (f *follower) follow(ctx context.Context) error {
	archived, err := f.log.archived(ctx, f.id)
	if err != nil || f.emit(archived) {
		return err
	}
	over, err := f.catchUp(ctx)
	if over {
		return err
	}
	waited := f.log.news.waitFor(ctx, f.log.key("news"), f.id, func() bool {
		over, err = f.catchUp(ctx)
		return over
	})
	return cmp.Or(err, waited)
}

// catchUp yields what the stream has. It reports whether nothing follows: the caller has stopped, the task has ended,
// or there was an error.
func (f *follower) catchUp(ctx context.Context) (over bool, _ error) {
	for {
		events, state, err := f.read(ctx)
		if err != nil || f.emit(events) {
			return true, err
		}
		if len(events) == batch {
			continue // there may be more
		}
		if state == "" {
			return true, ErrNotFound
		}
		return state == Ended, nil
	}
}

// read reads what comes next. Only a few followers do so at a time, so that they leave connections to others.
func (f *follower) read(ctx context.Context) ([]Event, State, error) {
	select {
	case f.log.reading <- struct{}{}:
		defer func() { <-f.log.reading }()
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
	return f.log.read(ctx, f.id, f.after, batch)
}

// emit yields the events that the caller does not have yet. It reports whether the caller has stopped, or got the end
// mark.
func (f *follower) emit(events []Event) (over bool) {
	for _, e := range events {
		if !later(e.ID, f.after) {
			continue
		}
		f.after = e.ID
		if !f.yield(e, nil) || e.End {
			return true
		}
	}
	return false
}
