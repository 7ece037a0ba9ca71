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

// The causes of a cancel, as the store records them.
const (
	causeUser  = "user"  // a person cancelled the task
	causeNewer = "newer" // something newer made the task pointless; By is the sentence that says what
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

// StopAll cancels, on behalf of by, the unfinished tasks of a thread that were requested, or last retried, before the
// time of the ID before. So a stop command can arrive late and repeatedly. Waiting tasks are cancelled first, so that
// none of them starts in the meantime. governs reports whether by may stop a task; spared counts the tasks for which
// it returns false.
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

// Repeat is Retry for a command that may arrive late and repeatedly. It returns ErrNotEnded for a task that was
// retried after the command was given.
func (d *Desk) Repeat(ctx context.Context, st Status, said time.Time) error {
	if st.Ending == nil || st.Ended.After(said) {
		return ErrNotEnded
	}
	_, err := d.Retry(ctx, st.Task.ID)
	return err
}

// Supersede ends the waiting and running tasks of a thread for which outdated returns true, because something newer
// made them pointless. reason is one sentence for people. It can be called again and then ends the rest. Use it for
// automatic work only: it does not look at absorbed tasks.
func (d *Desk) Supersede(ctx context.Context, thread, reason string, outdated func(Task) bool) error {
	open, err := d.Open(ctx, thread)
	if err != nil {
		return fmt.Errorf("supersede tasks: %w", err)
	}
	for _, st := range slices.Backward(open) { // backwards, because the end of the first would start the next
		if !outdated(st.Task) {
			continue
		}
		if err := d.stop(ctx, st.Task.ID, reason, causeNewer); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("supersede tasks: %w", err)
		}
	}
	return nil
}

// stop records a cancel, and ends the task if it is not running.
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
