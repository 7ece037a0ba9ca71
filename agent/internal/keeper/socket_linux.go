package keeper

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sealedPipe is os.Pipe for what the CLI and the worker say to each other. A pipe's end can be opened anew by any process of the same user
// (/proc/<pid>/fd/1), which could then speak for the CLI, or to it; a socket's cannot: open fails with ENXIO. Each direction is a pair of
// its own, shut for the other one, so that it ends as a pipe does: when the last process that may write is dead.
//
// The buffers stay as the kernel makes them: 208 KiB, of which short lines use up 1 KiB each, so that about as much fits in as into a pipe.
func sealedPipe() (r, w *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1")
	if err := unix.Shutdown(fds[0], unix.SHUT_WR); err != nil { // and with it the other one's SHUT_RD
		_, _ = r.Close(), w.Close()
		return nil, nil, fmt.Errorf("shut a socket for writing: %w", err)
	}
	return r, w, nil
}
