package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errand-fleet/errand/store"
)

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
		if _, err := endWaiting(ctx, d.store, rec.ID, tombstone(rec).ending()); err != nil {
			return fmt.Errorf("cancel task %s: %w", rec.ID, err)
		}
	}
	d.log.Info("task cancelled", "run", id, "by", by, "cause", cause)
	return nil
}
