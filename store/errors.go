package store

import (
	"errors"
	"fmt"
	"time"
)

// The errors that callers may have to distinguish. They are wrapped, so use errors.Is.
var (
	ErrNotFound   = errors.New("not found")           // no such record, session, checkpoint
	ErrBusy       = errors.New("thread is busy")      // claimed by another, or an earlier task of the thread comes first
	ErrRunning    = errors.New("already running")     // by a worker that may be dead; the reconciler handles it
	ErrEnded      = errors.New("already ended")       // nothing left to do
	ErrBegun      = errors.New("the task was begun")  // claimed or absorbed: an agent may know the request
	ErrNotEnded   = errors.New("not ended")           // only an ended task can be retried
	ErrStale      = errors.New("stale")               // an older delivery, fence or lease
	ErrSpent      = errors.New("taken for an answer") // the message was used as an answer and cannot be a task
	ErrNoQuestion = errors.New("no question is open")
	ErrTooLarge   = errors.New("too large")                         // the caller's data; nothing was stored
	ErrDamaged    = errors.New("damaged")                           // a checkpoint, session or topic differs from what was saved
	ErrOutage     = errors.New("redis did not answer for too long") // for [Watch].Lost: the claim cannot be trusted any more
)

// NotDue refuses to start a task before its time.
type NotDue struct {
	At time.Time // when it is due, by Redis' clock
}

// Error implements error.
func (e *NotDue) Error() string {
	return fmt.Sprintf("not due before %s", e.At.UTC().Format(time.RFC3339Nano))
}

// OpenQuestion is returned by [Store.Submit] for a message that may be an answer, if the thread's running task has
// asked something.
type OpenQuestion struct{ ID string }

// Error implements error.
func (e *OpenQuestion) Error() string { return "task " + e.ID + " waits for an answer" }

// verdict returns the error for the first word of a script's reply, or nil for success.
func verdict(r reply) error {
	switch status := r.text(0); status {
	case "ok", "no", "created", "exists":
		return nil
	case "notfound":
		return ErrNotFound
	case "busy":
		return ErrBusy
	case "running":
		return ErrRunning
	case "ended":
		return ErrEnded
	case "begun":
		return ErrBegun
	case "notended":
		return ErrNotEnded
	case "stale":
		return ErrStale
	case "spent":
		return ErrSpent
	case "openquestion":
		return &OpenQuestion{ID: r.text(1)}
	case "noquestion":
		return ErrNoQuestion
	case "held":
		return &Held{At: fromMicros(r.text(1)), Interval: time.Duration(r.number(2)) * time.Microsecond, Why: r.text(3)}
	case "full":
		return &Full{Blocked: Blocked{Scope: r.text(1), Runs: r.number(2), Max: r.number(3), Place: r.number(4)}, Explained: r.text(5)}
	case "overbudget":
		return &OverBudget{Spending: spending(r.text(1), r.text(2), r.text(4)), Reserved: usd(r.text(3))}
	case "notdue":
		return &NotDue{At: fromMicros(r.text(1))}
	default:
		return fmt.Errorf("unknown reply %q", status)
	}
}
