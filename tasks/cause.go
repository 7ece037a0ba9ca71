package tasks

import (
	"errors"
	"fmt"
)

// Causes for which a worker stops a run. They travel as context causes: the first one wins, and decides the ending.
var (
	errDrain     = errors.New("the worker is shutting down")
	errClaimLost = errors.New("the claim on the thread is lost")
)

// cancelled is the cause of a run that somebody asked to stop.
type cancelled struct{ by string }

func (c cancelled) Error() string { return fmt.Sprintf("cancelled by %s", c.by) }

// causeUser is what the store's tombstone says for a cancel by a person.
const causeUser = "user"
