package record

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// The causes of a cancel, as the store records them.
const (
	CauseUser  = "user"  // a person cancelled the task
	CauseTaken = "taken" // a person takes the task over; see cancel.lua
	CauseNewer = "newer" // something newer made the task pointless; By is the sentence that says what
)

// Cancellation is the cause that ends the context of a run that was asked to stop, as the task's record states it.
type Cancellation struct{ By, Cause string }

func CancellationOf(rec store.Record) Cancellation {
	return Cancellation{By: rec.CancelBy, Cause: rec.CancelCause}
}

func (c Cancellation) Error() string { return fmt.Sprintf("cancelled by %s", c.By) }

// Ending returns the ending of a task that was asked to stop.
func (c Cancellation) Ending() tasks.Ending {
	if c.Cause == CauseNewer {
		return tasks.Ending{Kind: tasks.Superseded, Reason: c.By, At: time.Now()}
	}
	if c.Cause == CauseTaken {
		return tasks.Ending{Kind: tasks.Taken, By: c.By, At: time.Now()}
	}
	return tasks.Ending{Kind: tasks.Cancelled, By: c.By, At: time.Now()}
}

// EndWaiting ends a waiting task and the tasks that its earlier run absorbed. It returns false if the task is not
// waiting.
func EndWaiting(ctx context.Context, s *store.Store, id string, e tasks.Ending) (bool, error) {
	with, err := s.Absorbed(ctx, id)
	if err != nil {
		return false, err
	}
	for _, rec := range with {
		e.Covers = append(e.Covers, rec.ID)
	}
	return s.EndWaiting(ctx, id, format.JSON(e))
}
