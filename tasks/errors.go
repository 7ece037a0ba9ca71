package tasks

import (
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/forge"
)

// ErrRefused means that a source does not allow a sender's action.
var ErrRefused = errors.New("refused")

var (
	// ErrNotFound means that the task does not exist or has expired.
	ErrNotFound = errors.New("no such task")
	// ErrNotEnded means that a task cannot be retried because it has not ended.
	ErrNotEnded = errors.New("the task has not ended")
	// ErrNoQuestion is returned by Desk.Submit if a message that can only be an answer answers no open question.
	ErrNoQuestion = errors.New("no open question")
)

// ErrLater postpones a task: until there is a slot, or until a given time. It is not a failure.
type ErrLater struct {
	At   time.Time
	Why  string // a clause for people, without amounts of money, host names or texts of other services
	Tell string // identifies the reason: followers see Why again when it changes. Empty: only the status has Why
}

func (e *ErrLater) Error() string {
	return fmt.Sprintf("later, at %s: %s", e.At.UTC().Format(time.RFC3339), e.Why)
}

// Later returns an ErrLater that is due after d and whose reason is shown to followers of the task.
func Later(d time.Duration, why string) *ErrLater {
	return &ErrLater{At: time.Now().Add(d), Why: why, Tell: why}
}

// InputError is a mistake of the person who asked. Sentence explains it to them. Retrying does not help.
type InputError struct {
	Sentence string
	Option   string // what the mistake is about, such as OptionDirectory; empty: something else
}

// What the code has to know that a mistake is about.
const (
	OptionDirectory = "directory" // the option of a request that says in which directory its agent starts
	OptionBudget    = "budget"    // a budget of the day, which is used up; its scope and amount follow
)

func (e *InputError) Error() string { return e.Sentence }

// FromForge converts a forge's errors to those of this package. It returns any other error unchanged.
func FromForge(err error) error {
	if refused, ok := errors.AsType[*forge.RefusedError](err); ok {
		return &InputError{Sentence: refused.Sentence}
	}
	if limited, ok := errors.AsType[*forge.LimitError](err); ok {
		return &ErrLater{At: limited.At, Why: limited.Why}
	}
	return err
}
