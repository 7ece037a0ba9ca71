package main

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/errand-fleet/errand/tasks"
)

// exit is an error about which everything has been said: the code is what is left of it. docs/cli.md lists them.
type exit int

const (
	failed      exit = 1 // the command could not do its work
	misused     exit = 2 // it was called wrongly
	unanswered  exit = 3 // the task failed or was lost
	stopped     exit = 4 // it took too long or stood still
	cancelled   exit = 5 // it was cancelled, withdrawn or superseded
	refusedTask exit = 6 // it may not be done at all
	interrupted exit = 130
	terminated  exit = 143
)

func (e exit) Error() string { return fmt.Sprintf("exit with %d", int(e)) }

// wrongUse is an error in what the command was given.
type wrongUse struct{ error }

// endedAs is how a command exits that has followed a task to its end; nil when it was answered.
func endedAs(k tasks.EndingKind) error {
	switch k {
	case tasks.Answered:
		return nil
	case tasks.TimedOut, tasks.Stalled:
		return stopped
	case tasks.Cancelled, tasks.Withdrawn, tasks.Superseded:
		return cancelled
	case tasks.Refused:
		return refusedTask
	}
	return unanswered
}

// leftBy is how a command exits that was told to leave.
func leftBy(sig os.Signal) exit {
	if sig == syscall.SIGTERM {
		return terminated
	}
	return interrupted
}

// say writes to a terminal. One that is gone is nobody to tell about it.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
