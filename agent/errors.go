package agent

import (
	"cmp"
	"strings"
	"time"
)

// Class sorts failures by what can be done about them. Retry, the sentence for whoever asked and the one for whoever runs the fleet
// go with it: see classes, and docs/errors.md, which says the same for readers.
type Class string

// The classes of failures.
const (
	ClassCLIMissing Class = "cli_missing"
	ClassCLIVersion Class = "cli_version"
	ClassAuth       Class = "auth"
	ClassBilling    Class = "billing"
	ClassRateLimit  Class = "rate_limit"
	ClassUsageLimit Class = "usage_limit"
	ClassOverloaded Class = "overloaded"
	ClassModel      Class = "model_unavailable"
	ClassContext    Class = "context_too_long"
	ClassRequest    Class = "invalid_request"
	ClassMaxTurns   Class = "max_turns"
	ClassBudget     Class = "budget"
	ClassSchema     Class = "schema"
	ClassRefusal    Class = "refusal"
	ClassSession    Class = "session_not_found"
	ClassConfig     Class = "config"
	ClassStart      Class = "start_failed"
	ClassNoResult   Class = "no_result"
	ClassKilled     Class = "killed"
	ClassOOM        Class = "killed_oom"
	ClassProcesses  Class = "too_many_processes"
	ClassFrozen     Class = "worker_frozen"
	ClassWorkspace  Class = "workspace"
	ClassInput      Class = "input"
	ClassInternal   Class = "internal"
	ClassUnknown    Class = "unknown"
)

// Retry says whether to repeat a run that failed, and how. The package itself repeats nothing.
type Retry string

// The ways to repeat a run, from none.
const (
	RetryNever  Retry = "never"         // it would fail again until a person has changed something
	RetrySoon   Retry = "soon"          // a few times, after a growing wait of seconds to minutes
	RetryLater  Retry = "later"         // as RetrySoon, after minutes at the least: the model said "too many"
	RetryReset  Retry = "at_reset"      // once Result.RetryAt has passed
	RetryFresh  Retry = "fresh_session" // at once, without Spec.Resume
	RetryResume Retry = "resume_once"   // at once and one time only, with Spec.Resume: what was done must not be done again
)

// Retry is how to repeat a run that failed with this class.
func (c Class) Retry() Retry { return cmp.Or(classes[c].retry, RetryNever) }

// Retry is how to repeat the run, by how it ended. One that was stopped is for whoever stopped it to repeat.
func (r Result) Retry() Retry {
	switch {
	case r.Error != nil:
		return r.Error.Class.Retry()
	case r.Outcome == Stalled:
		return RetryResume
	default:
		return RetryNever
	}
}

// Error is a failure, told to each who can do something about it.
type Error struct {
	Class   Class  `json:"class"`
	Message string `json:"message"`          // what happened, in detail
	User    string `json:"user"`             // one sentence for whoever asked
	Remedy  string `json:"remedy,omitempty"` // what whoever runs the fleet can do
}

func (e *Error) Error() string { return string(e.Class) + ": " + e.Message }

// NewError makes an Error of a class with that class's sentences.
func NewError(c Class, message string) *Error {
	return &Error{Class: c, Message: message, User: classes[c].user, Remedy: classes[c].remedy}
}

// soon is what "a few minutes" may mean in the sentences of classes.
const soon = 15 * time.Minute

// until takes the advice to try again soon out of the sentence for whoever asked, when it is known to take longer.
func (e *Error) until(at time.Time) {
	if statement, _, advised := strings.Cut(e.User, ". "); advised && time.Until(at) > soon {
		e.User = statement + "."
	}
}
