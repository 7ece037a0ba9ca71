package keeper

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keep runs a keeper to its end and returns the exit code of its process, which only says whether the keeper itself
// worked.
func keep(control, status *os.File) int {
	// The kernel delivers Pdeathsig when the thread that forked ends, so this thread has to live as long as the
	// process.
	runtime.LockOSThread()
	// A tool of the run is a process of the same user: it must not read the credential in this process
	// (/proc/<pid>/mem).
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if err := BecomeSubreaper(); err != nil {
		return startFailed(status, err)
	}
	// Caught and dropped rather than ignored: an ignored signal would be inherited by the CLI and by everything it
	// starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE)

	in := bufio.NewReader(control)
	var order Order
	if err := readLine(in, &order); err != nil {
		return startFailed(status, fmt.Errorf("read the start order: %w", err))
	}
	if order.GatewayPort > 0 {
		if err := passListener(order.GatewayPort); err != nil {
			return startFailed(status, err)
		}
	}
	if order.LockLimit > 0 {
		setLockLimit(order.LockLimit)
	}
	oomBefore := oomKills("/proc", "/sys/fs/cgroup")
	leader, err := startLeader(order, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL})
	if err != nil {
		return startFailed(status, err)
	}
	// When memory runs out, the kernel should choose an agent rather than the worker. Children inherit it.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", leader.Process.Pid), []byte("500"), 0o600)
	started(status)

	s := supervisor{pid: leader.Process.Pid, order: order}
	s.supervise(in)
	exit := reapAll(leader)
	exit.Stopped, exit.Silence, exit.Processes = s.stopped, s.silence, s.processes
	exit.OOM = max(0, oomKills("/proc", "/sys/fs/cgroup")-oomBefore)
	if s.orphaned && order.RunDir != "" {
		_ = os.RemoveAll(order.RunDir)
	}
	_ = writeLine(status, exit)
	return 0
}

// reapOrphans reaps dead children other than the leader: processes that tools left behind and that then ended by
// themselves. Over hours they would fill the process table.
func reapOrphans(leader int) {
	for _, pid := range children(os.Getpid()) {
		if pid != leader {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// reapAll kills and reaps everything the leader left behind. ECHILD proves that nothing is left: what the leader
// started became a child of this process when its parent died.
func reapAll(leader *exec.Cmd) Exit {
	e := Exit{Code: -1}
	_ = unix.Kill(-leader.Process.Pid, unix.SIGKILL)
	if exited(leader.Process.Pid) {
		_ = leader.Wait() // its error repeats what the state says
		e.Code = leader.ProcessState.ExitCode()
		if ws, ok := leader.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.Signal = unix.SignalName(ws.Signal())
		}
	}
	for stop := time.Now().Add(killTimeout); ; {
		left, _ := descendants(os.Getpid())
		killRun(left)
		killed, none := reapDead()
		if e.Swept += killed; none {
			break
		}
		if time.Now().After(stop) {
			e.Stuck = len(left)
			break
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // killed, not yet dead: wait4 has no timeout
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &u) == nil {
		e.CPU = time.Duration(u.Utime.Nano() + u.Stime.Nano())
		e.MaxRSS = u.Maxrss << 10 // the kernel counts KiB
	}
	return e
}

// reapDead reaps the children that are dead. It returns how many of them a signal had killed, and whether no child
// is left.
func reapDead() (killed int, none bool) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			return killed, true
		}
		if pid > 0 && ws.Signaled() {
			killed++ // not one that had ended before
		}
		if pid <= 0 && !errors.Is(err, unix.EINTR) {
			return killed, false
		}
	}
}

// killRun kills all processes of a keeper's run, of which it knows some.
func killRun(known []int) {
	if os.Getpid() == 1 { // the first process of a sandbox, which contains only the run
		_ = unix.Kill(-1, unix.SIGKILL)
	}
	killAll(known)
}

// sealedPipe is os.Pipe for what the CLI and the worker say to each other. Any process of the same user can open a
// pipe's end by /proc/<pid>/fd/1, and could then speak for the CLI, or to it. It cannot open the end of a socket:
// open fails with ENXIO. Each direction has a separate pair, shut down in the other direction, so that it ends as a pipe does: when the
// last process that may write is dead.
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
// network it was created in, whichever process holds it. So the keeper, which is inside, creates the one on which the
// gateway listens and passes it to the worker: the CLI connects to an address in its private network and is answered
// from outside.

// socketPair returns two ends between which a socket can be passed.
func socketPair() (worker, keeper *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "gateway-worker"), os.NewFile(uintptr(fds[1]), "gateway-keeper"), nil
}

// passListener listens on a port of loopback and passes the socket to the worker.
func passListener(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("create a socket for the gateway: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err == nil {
		err = unix.Sendmsg(gatewayFD, []byte{0}, unix.UnixRights(fd), nil, 0)
	}
	if err != nil {
		return fmt.Errorf("listen for the gateway: %w", err)
	}
	return unix.Close(gatewayFD)
}

// receiveListener takes the socket that a keeper has passed. It does not wait: the keeper passes it before it
// reports that the CLI runs.
func receiveListener(f *os.File) (net.Listener, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(f.Fd()), make([]byte, 1), oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receive the gateway's socket: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("receive the gateway's socket: no socket"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("receive the gateway's socket: no socket"), err)
	}
	socket := os.NewFile(uintptr(fds[0]), "gateway")
	defer socket.Close()
	l, err := net.FileListener(socket)
	if err != nil {
		return nil, fmt.Errorf("receive the gateway's socket: %w", err)
	}
	return l, nil
}

// ownProgram starts this binary again, even if its file was replaced by an upgrade.
const ownProgram = "/proc/self/exe"

// openProgram opens it for execution only: it may be a file that this user cannot read.
func openProgram() (*os.File, error) {
	fd, err := unix.Open(ownProgram, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: ownProgram, Err: err}
	}
	return os.NewFile(uintptr(fd), ownProgram), nil
}

// MakePrivate makes this process unreadable to other processes of its user. Their shells could otherwise read its
// environment and memory, including secrets, in /proc. It returns a notice for the operator if that does not help: root
// can always read.
func MakePrivate() (notice string, err error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return "", fmt.Errorf("make the process non-dumpable: %w", err)
	}
	if os.Geteuid() == 0 {
		return "running as root: outside a sandbox, tools of the agent are root too and can read this process's secrets; run as an ordinary user", nil
	}
	return "", nil
}

// Private reports whether MakePrivate was called and helps, and if not, what would help.
func Private() (ok bool, remedy string) {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	switch {
	case os.Geteuid() == 0:
		return false, "run as an ordinary user, or in a sandbox (ERRAND_SANDBOX)"
	case err != nil || dumpable != 0:
		return false, "call MakePrivate first thing in main"
	}
	return true, ""
}

// PrivateFromStart reports whether the kernel hides the processes of this program from their first instruction on,
// because their user may execute but not read it. MakePrivate takes effect some milliseconds later.
func PrivateFromStart() bool {
	return unix.Faccessat(unix.AT_FDCWD, ownProgram, unix.R_OK, unix.AT_EACCESS) != nil
}
