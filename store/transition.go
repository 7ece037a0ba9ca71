package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Silent tells for how long runs have been without their claims, by their IDs and by Redis' clock, in one round trip: 0 the first time that it is
// asked of a run and in this term, see [Leader.Lead]. The holder may put the claim back, which begins the time anew. Tasks that are claimed or
// do not run any more are left out.
func (s *Store) Silent(ctx context.Context, term string, runs ...LiveRecord) (map[string]time.Duration, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	args := []any{term}
	for _, run := range runs {
		args = append(args, run.ID, run.Fence)
	}
	r, err := s.run(ctx, "silent", args...)
	if err != nil {
		return nil, fmt.Errorf("look for the claims of %d runs: %w", len(runs), err)
	}
	silent := map[string]time.Duration{}
	for i, run := range runs {
		if r.text(i+1) != "" {
			silent[run.ID] = time.Duration(r.number(i+1)) * time.Microsecond
		}
	}
	return silent, nil
}

// Requeue makes a new delivery the valid one, for a task whose delivery got lost or whose worker died; it is the reconciler's.
// delivery and fence are those it saw; when either has moved, the task ended, or a running one is claimed, it is [ErrStale]. A running
// task waits again, in its old place. crashed counts a run that was lost, unless it was idle, see [Claim.Idle]. The record comes back as it is
// then.
func (s *Store) Requeue(ctx context.Context, id string, delivery int, fence int64, crashed bool) (Record, error) {
	r, err := s.run(ctx, "requeue", id, delivery, fence, crashed, rand.Text())
	if err != nil {
		return Record{}, fmt.Errorf("requeue %s: %w", id, err)
	}
	return r.record(id, 1), nil
}

// EndWaiting ends a task that has not started (withdrawn, refused) and puts it into the outbox, due now. It is false, and nothing
// changes, when the task does not wait: then whoever runs it decides its ending, or it has one. Tasks that stayed with it while it waits
// end with it.
func (s *Store) EndWaiting(ctx context.Context, id string, ending json.RawMessage) (bool, error) {
	return s.endWaiting(ctx, id, ending, false)
}

func (s *Store) endWaiting(ctx context.Context, id string, ending json.RawMessage, untouched bool) (bool, error) {
	if len(ending) > maxTask {
		return false, fmt.Errorf("end waiting %s: ending of %d bytes, limit %d: %w", id, len(ending), maxTask, ErrTooLarge)
	}
	r, err := s.run(ctx, "endwaiting", id, []byte(ending), s.cfg.EventCap, s.cfg.Retention.Milliseconds(), rand.Text(), untouched)
	if err != nil {
		return false, fmt.Errorf("end waiting %s: %w", id, err)
	}
	return r.text(0) == "ok", nil
}

// Cancel writes the tombstone of a task that waits or runs, and then hints the holder at it. The first cancel wins, a later one and
// one after the end change nothing. It stops nobody by itself: see [Watch], and [Store.EndWaiting] for a task that waits. The record
// comes back as it is then, of an absorbed task that of the one whose run it is in, which has to stop. cause must not be empty.
func (s *Store) Cancel(ctx context.Context, id, by, cause string) (Record, error) {
	if cause == "" {
		return Record{}, fmt.Errorf("cancel %s: %w", id, errors.New("no cause"))
	}
	r, err := s.run(ctx, "cancel", id, by, cause)
	if err != nil {
		return Record{}, fmt.Errorf("cancel %s: %w", id, err)
	}
	return r.record(r.text(1), 2), nil
}

// Retry lets an ended task wait again under a new delivery, due at once and as if it had never run: without ending, tombstone, attempts
// and crashes, and on its own if it had been absorbed. Its place in the thread is that of its ID, its events go on behind the earlier
// ones. [ErrNotEnded] otherwise.
func (s *Store) Retry(ctx context.Context, id string) (Record, error) {
	r, err := s.run(ctx, "retry", id, rand.Text())
	if err != nil {
		return Record{}, fmt.Errorf("retry %s: %w", id, err)
	}
	return r.record(id, 1), nil
}
