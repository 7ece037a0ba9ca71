package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// What the store's tombstone says for a cancel.
const (
	causeUser  = "user"  // by a person
	causeNewer = "newer" // something has made the task pointless: who cancelled is the sentence that says so
)

// Cancellation is the cause that ends the context of a run that was asked to stop, as the task's record states it.
type Cancellation struct{ By, Cause string }

func CancellationOf(rec store.Record) Cancellation {
	return Cancellation{By: rec.CancelBy, Cause: rec.CancelCause}
}

func (c Cancellation) Error() string { return fmt.Sprintf("cancelled by %s", c.By) }

// Ending returns the ending of a task that was asked to stop.
func (c Cancellation) Ending() Ending {
	if c.Cause == causeNewer {
		return Ending{Kind: Superseded, Reason: c.By, At: time.Now()}
	}
	return Ending{Kind: Cancelled, By: c.By, At: time.Now()}
}

// StopAll cancels, on behalf of by, what is under way in a thread and was asked for, for the last time, before the task with that ID would have
// been: the word to stop may come late, and often. Those that wait go first, so that none of them starts meanwhile. governs says of each whether by may have it
// stopped; spared are those of which he may not.
func (d *Desk) StopAll(ctx context.Context, thread, before, by string, governs func(Task) bool) (stopped, spared int, err error) {
	open, err := d.Open(ctx, thread)
	if err != nil {
		return 0, 0, err
	}
	for _, st := range slices.Backward(open) {
		switch {
		case st.Task.ID > before, st.Retried.After(Born(before)):
		case !governs(st.Task):
			spared++
		default:
			if _, err := d.Cancel(ctx, st.Task.ID, by); err != nil {
				return stopped, spared, err
			}
			stopped++
		}
	}
	return stopped, spared, nil
}

// Repeat is Retry for a word that may come late, and often: what has been tried again since it was said is left alone, as ErrNotEnded.
func (d *Desk) Repeat(ctx context.Context, st Status, said time.Time) error {
	if st.Ending == nil || st.Ended.After(said) {
		return ErrNotEnded
	}
	_, err := d.Retry(ctx, st.Task.ID)
	return err
}

// Supersede ends the tasks of a thread that something newer has made pointless, as outdated tells of each that waits or runs. reason is one
// sentence for people. It may be called again, and finds what is left. It is for automatic work: of what a run has absorbed it knows
// nothing.
func (d *Desk) Supersede(ctx context.Context, thread, reason string, outdated func(Task) bool) error {
	open, err := d.Open(ctx, thread)
	if err != nil {
		return fmt.Errorf("supersede tasks: %w", err)
	}
	for _, st := range slices.Backward(open) { // or the end of the first would start the next
		if !outdated(st.Task) {
			continue
		}
		if err := d.stop(ctx, st.Task.ID, reason, causeNewer); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("supersede tasks: %w", err)
		}
	}
	return nil
}

// stop leaves the tombstone of a task, and ends it where no run does.
func (d *Desk) stop(ctx context.Context, id, by, cause string) error {
	rec, err := d.store.Cancel(ctx, id, by, cause)
	if err != nil {
		return d.notFound(id, err)
	}
	if rec.State == store.Waiting {
		if _, err := EndWaiting(ctx, d.store, rec.ID, CancellationOf(rec).Ending()); err != nil {
			return fmt.Errorf("cancel task %s: %w", rec.ID, err)
		}
	}
	d.log.Info("task cancelled", "run", id, "by", by, "cause", cause)
	return nil
}

// EndWaiting ends a waiting task and the tasks that its earlier run absorbed. It returns false if the task is not waiting.
func EndWaiting(ctx context.Context, s *store.Store, id string, e Ending) (bool, error) {
	with, err := s.Absorbed(ctx, id)
	if err != nil {
		return false, err
	}
	for _, rec := range with {
		e.Covers = append(e.Covers, rec.ID)
	}
	return s.EndWaiting(ctx, id, format.JSON(e))
}
