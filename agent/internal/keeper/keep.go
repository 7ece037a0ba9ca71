package keeper

import (
	"os"
	"strconv"
	"syscall"
)

// keepFiles keeps all descriptors but the standard ones from the CLI: it would hold our pipes open, and could write to them; and whatever
// the worker's own parent had left open, a socket or a file of secrets, would reach the agent's tools.
func keepFiles() {
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(statusFD)
	open, _ := os.ReadDir("/dev/fd") // without it there is nothing to be found out
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > statusFD {
			syscall.CloseOnExec(fd)
		}
	}
}
