//go:build !linux

package agent

import (
	"context"
	"os"
	"sync"
	"time"
)

var keepers sync.Map

// selfExecutable starts this binary again; a file replaced meanwhile would be the new one.
var selfExecutable, _ = os.Executable()

func openProgram() (*os.File, error) { return os.Open(selfExecutable) }

const runMarker = "ERRAND_RUN"

// sweepMarked cannot look into other processes' environments here.
func sweepMarked(string) int { return 0 }

// adopt: there are no child subreapers here.
func adopt() error { return nil }

func birthMark() uint64 { return 0 }

// zombies are init's here.
type zombies struct{}

func (zombies) reap(time.Time) {}

// stoppedProcess: nobody looks here.
func stoppedProcess(int) bool { return false }

// ownMark: likewise, so that nothing carries one.
func ownMark() string { return "" }

func sweepOrphans(context.Context) (int, error) { return 0, nil }

// MakePrivate says that this system offers no protection of a process from others of its user.
func MakePrivate() (notice string, err error) {
	return "this system cannot hide the worker's secrets from the agent's tools; use Linux in production", nil
}

func isPrivate() (ok bool, remedy string) { return false, "use Linux in production" }

func beginsPrivate() bool { return false }

func readable([]string) []string { return nil }
