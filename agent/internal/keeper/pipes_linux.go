package keeper

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sealedPipe is os.Pipe for what the CLI and the worker say to each other. Any process of the same user can open a
// pipe's end by /proc/<pid>/fd/1, and could then speak for the CLI, or to it. It cannot open the end of a socket: open
// fails with ENXIO. Each direction has a separate pair, shut down in the other direction, so that it ends as a pipe
// does: when the last process that may write is dead.
//
// The buffers keep the kernel's size: 208 KiB, of which short lines use 1 KiB each, so that about as much fits in as
// into a pipe.
func sealedPipe() (r, w *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1")
	if err := unix.Shutdown(fds[0], unix.SHUT_WR); err != nil { // this is SHUT_RD for the other end
		_, _ = r.Close(), w.Close()
		return nil, nil, fmt.Errorf("shut a socket down for writing: %w", err)
	}
	return r, w, nil
}

// A run with its own network has nothing but loopback in its sandbox, where only the run is. A socket belongs to the
// network it was created in, whichever process holds it. So the keeper, which is inside, creates those on which the
// gateway and the egress proxy listen and passes them to the worker: the run connects to an address in its private
// network and is answered from outside.

// socketPair returns two ends between which a socket can be passed.
func socketPair() (worker, keeper *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "sockets-worker"), os.NewFile(uintptr(fds[1]), "sockets-keeper"), nil
}

// receiveListener takes a socket that a keeper has passed. It does not wait: the keeper passes it before it
// reports that the CLI runs.
func receiveListener(f *os.File) (net.Listener, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(f.Fd()), make([]byte, 1), oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receive a listening socket: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("receive a listening socket: no socket"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("receive a listening socket: no socket"), err)
	}
	socket := os.NewFile(uintptr(fds[0]), "listener")
	defer socket.Close()
	l, err := net.FileListener(socket)
	if err != nil {
		return nil, fmt.Errorf("receive a listening socket: %w", err)
	}
	return l, nil
}
