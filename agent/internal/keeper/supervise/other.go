//go:build !linux

package supervise

import (
	"errors"
	"os"
)

// Only Linux runs agents. Elsewhere, programs that do not run them are compiled with this package.

func keep(_, status *os.File) int { return startFailed(status, errors.ErrUnsupported) }
func overlay([]string) error      { return errors.ErrUnsupported }
