package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// The errors that callers may have to distinguish. They are wrapped, so use errors.Is.
var (
	ErrNotFound = errors.New("not found") // no such record, session, checkpoint
	// claimed by another, or an earlier task of the thread comes first
	ErrBusy       = errors.New("thread is busy")
	ErrRunning    = errors.New("already running")     // by a worker that may be dead; the reconciler handles it
	ErrEnded      = errors.New("already ended")       // nothing left to do
	ErrBegun      = errors.New("the task was begun")  // claimed or absorbed: an agent may know the request
	ErrNotEnded   = errors.New("not ended")           // only an ended task can be retried
	ErrUnposted   = errors.New("not posted")          // the final message, which absorbed tasks share
	ErrStale      = errors.New("stale")               // an older delivery, fence or lease
	ErrSpent      = errors.New("taken for an answer") // the message was used as an answer and cannot be a task
	ErrNoQuestion = errors.New("no question is open")
	ErrTooLarge   = errors.New("too large") // the caller's data; nothing was stored
	// a checkpoint, session or topic differs from what was saved
	ErrDamaged = errors.New("damaged")
	// for [Watch].Lost: the claim cannot be trusted any more
	ErrOutage = errors.New("redis did not answer for too long")

	// ErrNotReplicated means that a step is done, but fewer replicas of Redis than Config.Replicas confirmed it in
	// time. The step may be repeated.
	ErrNotReplicated = errors.New("too few replicas of Redis have confirmed the step")
)

// wrapf returns err with what failed in front, such as "claim 1700000000000000-chat-x", or nil if err is nil.
func wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// NotDue refuses to start a task before its time.
type NotDue struct {
	At time.Time // when it is due, by this process' clock
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

// wrongType reports whether a command failed because the key has another type.
func wrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }
