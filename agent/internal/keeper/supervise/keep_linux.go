package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// keep runs a keeper to its end and returns the exit code of its process, which only says whether the keeper itself
// worked.
func keep(control, status *os.File) int {
	// The kernel delivers Pdeathsig when the thread that forked ends, so this thread has to live as long as the
	// process.
	runtime.LockOSThread()
	setName()
	// A tool of the run is a process of the same user: it must not read the credential in this process
	// (/proc/<pid>/mem).
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if err := BecomeSubreaper(); err != nil {
		return startFailed(status, err)
	}
	// Caught and dropped rather than ignored: an ignored signal would be inherited by the CLI and by everything it
	// starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT,
		syscall.SIGPIPE)

	in := bufio.NewReader(control)
	var order Order
	if err := ReadLine(in, &order); err != nil {
		return startFailed(status, fmt.Errorf("read the start order: %w", err))
	}
	if len(order.Ports) > 0 {
		if err := passListeners(order.Ports); err != nil {
			return startFailed(status, err)
		}
	}
	if order.LockLimit > 0 {
		setLockLimit(order.LockLimit)
	}
	withoutCores()
	segments := ownSegments()
	oomBefore := oomKills("/proc", "/sys/fs/cgroup")
	leader, err := startLeader(order, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL})
	if err != nil {
		return startFailed(status, err)
	}
	// When memory runs out, the kernel should choose an agent rather than the worker. Children inherit it.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", leader), []byte("500"), 0o600)
	started(status)

	s := supervisor{
		pid: leader, order: order, segments: segments,
		worker: worker{limit: order.WorkerTimeout, stat: WorkerFD, control: ControlFD},
	}
	s.supervise(in)
	exit := reapAll(leader)
	exit.Stopped, exit.Silence, exit.Processes, exit.Memory, exit.Peak =
		s.stopped, s.silence, s.processes, s.memory, s.peak
	exit.OOM = max(0, oomKills("/proc", "/sys/fs/cgroup")-oomBefore)
	if s.orphaned && order.RunDir != "" {
		_ = dirtree.Remove(order.RunDir, LockFile)
	}
	_ = WriteLine(status, exit)
	return 0
}

// setName shows the keeper's name in lists of processes: it was executed as a file of another name.
func setName() {
	if name, err := unix.BytePtrFromString(Name); err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(name)), 0, 0, 0) //nolint:gosec // a C string
		runtime.KeepAlive(name)
	}
}

// reapOrphans reaps dead children other than the leader: processes that tools left behind and that then ended by
// themselves. Over hours they would fill the process table.
func reapOrphans(leader int) {
	for _, pid := range Children(os.Getpid()) {
		if pid != leader {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// reapAll kills and reaps everything the leader left behind. ECHILD proves that nothing is left: what the leader
// started became a child of this process when its parent died.
func reapAll(leader int) Exit {
	e := Exit{Code: -1}
	_ = unix.Kill(-leader, unix.SIGKILL)
	var ws unix.WaitStatus
	if pid, _ := unix.Wait4(leader, &ws, unix.WNOHANG, nil); pid == leader {
		e.Code = ws.ExitStatus()
		if ws.Signaled() {
			e.Signal = unix.SignalName(ws.Signal())
		}
	}
	for stop := time.Now().Add(KillTimeout); ; {
		killed, none := reapDead()
		if e.Swept += killed; none {
			break
		}
		left, _ := Descendants(os.Getpid())
		killRun(left)
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
	KillAll(known)
}

// passListeners listens on ports of loopback and passes the sockets to the worker, in the same order.
func passListeners(ports []int) error {
	for _, port := range ports {
		if err := passListener(port); err != nil {
			return fmt.Errorf("listen on port %d: %w", port, err)
		}
	}
	return unix.Close(ListenFD)
}

func passListener(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return err
	}
	return unix.Sendmsg(ListenFD, []byte{0}, unix.UnixRights(fd), nil, 0)
}
