package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Silent returns for how long runs have been without their claims, by ID and by Redis' clock, in one round trip. The
// time is 0 at the first call for a run in this term; see [Leader.Lead]. If the holder restores the claim, the time
// starts over. Tasks that are claimed or no longer run are left out.
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

// Requeue makes a new delivery the valid one, for a task whose delivery was lost or whose worker died. Only the
// reconciler calls it. delivery and fence are the values that it saw; Requeue returns [ErrStale] if either has
// changed, the task has ended, or it is running and claimed. A running task waits again, in its old place. crashed
// counts a lost run, unless the run was idle; see [Claim.Idle]. Requeue returns the record after the change.
func (s *Store) Requeue(ctx context.Context, id string, delivery int, fence int64, crashed bool) (Record, error) {
	r, err := s.run(ctx, "requeue", id, delivery, fence, crashed, rand.Text())
	if err != nil {
		return Record{}, fmt.Errorf("requeue %s: %w", id, err)
	}
	return r.record(id, 1), nil
}

// EndWaiting ends a waiting task (withdrawn, refused) and puts it into the outbox, due now. It returns false and
// changes nothing if the task does not wait: then its run decides the ending, or it has ended. Absorbed tasks that
// stayed with it while it waits end with it.
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

// Cancel writes the tombstone of a task that waits or runs, and then sends the holder a hint. The first cancel wins;
// later ones, and one after the end, change nothing. Cancel does not stop the run itself: see [Watch], and
// [Store.EndWaiting] for a waiting task. It returns the record after the change. For an absorbed task it returns the
// record of the task whose run has to stop. cause must not be empty.
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

// Retry makes an ended task wait again under a new delivery, due at once, as if it had never run: without ending,
// tombstone, attempts and crashes, and no longer absorbed. It keeps its place in the thread, and its events continue
// after the earlier ones. Retry returns [ErrNotEnded] if the task has not ended.
func (s *Store) Retry(ctx context.Context, id string) (Record, error) {
	r, err := s.run(ctx, "retry", id, rand.Text())
	if err != nil {
		return Record{}, fmt.Errorf("retry %s: %w", id, err)
	}
	return r.record(id, 1), nil
}
