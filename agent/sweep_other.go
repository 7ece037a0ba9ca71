//go:build !linux

package agent

import (
	"context"
	"os"
)

// selfExecutable starts this binary again; a file replaced meanwhile would be the new one.
var selfExecutable, _ = os.Executable()

const runMarker = "ERRAND_RUN"

// sweepMarked cannot look into other processes' environments here.
func sweepMarked(string) int { return 0 }

// ownMark: likewise, so that nothing carries one.
func ownMark() string { return "" }

func sweepOrphans(context.Context) (int, error) { return 0, nil }

// MakePrivate says that this system offers no protection of a process from others of its user.
func MakePrivate() (notice string, err error) {
	return "this system cannot hide the worker's secrets from the agent's tools; use Linux in production", nil
}

func isPrivate() (ok bool, remedy string) { return false, "use Linux in production" }
