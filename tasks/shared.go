package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/store"
)

// shared completes the status of a task that is, or was to its end, in the run of another: who runs it, and the whole ending, which is kept
// with that one as long as it has it. After that one was tried again, or has expired, the task's own short ending has to do.
func (d *Desk) shared(ctx context.Context, s *Status) error {
	rec, err := d.store.Get(ctx, s.Into)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("task %s: %w", s.Into, err)
	}
	host := status(rec)
	switch {
	case s.Ending == nil:
		s.Started, s.Worker, s.Attempt, s.Cancel = host.Started, host.Worker, host.Attempt, or(s.Cancel, host.Cancel)
	case host.Ending != nil && host.Ending.At.Equal(s.Ending.At):
		s.Started, s.Worker, s.Attempt, s.Ending, s.Posted = host.Started, host.Worker, host.Attempt, host.Ending, host.Posted
	}
	return nil
}
