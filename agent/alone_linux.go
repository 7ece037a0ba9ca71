package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/gateway"
)

// A run of the Untrusted profile gets no network: in its sandbox there is loopback, and nobody on it but the run itself. A socket belongs to
// the network it was made in, whoever holds it. So the keeper, which is inside, makes the one on which the gateway listens and hands it
// out to the worker: the CLI connects to an address of its own network and is answered from outside.

// gatewayPort is where the CLI finds the gateway then. Nothing else is there.
const gatewayPort = 8080

// lendFD is where a keeper in such a sandbox hands the socket out.
const lendFD = 8

// alone reports whether runs can be given a network of their own. That bubblewrap works does not say so: a policy may forbid its loopback.
func (r *Runner) alone(ctx context.Context, bwrap string) bool {
	s := r.sandbox
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alone {
		return true
	}
	why := r.try(ctx, bwrap, "--unshare-net")
	s.alone = why == nil
	if !s.alone && !s.toldNet {
		s.toldNet = true
		r.log.Warn("untrusted runs share the network", "why", why.problem)
	}
	return s.alone
}

// lendListener listens on loopback and hands the socket to the worker.
func lendListener() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket for the gateway: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: gatewayPort, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, gateway.MaxConns)
	}
	if err == nil {
		err = unix.Sendmsg(lendFD, []byte{0}, unix.UnixRights(fd), nil, 0)
	}
	if err != nil {
		return fmt.Errorf("listen for the gateway: %w", err)
	}
	return unix.Close(lendFD)
}

// socketPair is where a socket is handed from one end to the other.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "lent"), os.NewFile(uintptr(fds[1]), "lend"), nil
}

// lent takes the socket that a keeper has handed out. It does not wait: the keeper did so before it said that the CLI runs.
func lent(f *os.File) (net.Listener, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(f.Fd()), make([]byte, 1), oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("take the gateway's socket: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("take the gateway's socket: there is none"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("take the gateway's socket: there is none"), err)
	}
	socket := os.NewFile(uintptr(fds[0]), "gateway")
	defer socket.Close()
	l, err := net.FileListener(socket)
	if err != nil {
		return nil, fmt.Errorf("take the gateway's socket: %w", err)
	}
	return l, nil
}
