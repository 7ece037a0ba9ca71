package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

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
