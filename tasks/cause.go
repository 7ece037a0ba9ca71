package tasks

import (
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/store"
)

// Causes for which a worker stops a run. They travel as context causes: the first one wins, and decides the ending.
var (
	errDrain     = errors.New("the worker is shutting down")
	errClaimLost = errors.New("the claim on the thread is lost")
)

// What the store's tombstone says for a cancel.
const (
	causeUser  = "user"  // by a person
	causeNewer = "newer" // something has made the task pointless: who cancelled is the sentence that says so
)

// cancelled is the cause of a run that was asked to stop, as the tombstone has it.
type cancelled struct{ by, cause string }

func tombstone(rec store.Record) cancelled {
	return cancelled{by: rec.CancelBy, cause: rec.CancelCause}
}

func (c cancelled) Error() string { return fmt.Sprintf("cancelled by %s", c.by) }

// ending is that of a task that was asked to stop.
func (c cancelled) ending() Ending {
	if c.cause == causeNewer {
		return Ending{Kind: Superseded, Reason: c.by, At: time.Now()}
	}
	return Ending{Kind: Cancelled, By: c.by, At: time.Now()}
}
