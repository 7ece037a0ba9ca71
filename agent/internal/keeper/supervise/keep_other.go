//go:build !linux

package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// keep is the keeper without a child subreaper. It contains the CLI's process group and outlives the worker as on
// Linux, but a process that has created a session escapes it. For development only; agent.New logs a notice.
func keep(control, status *os.File) int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE)
	in := bufio.NewReader(control)
	var order Order
	if err := ReadLine(in, &order); err != nil {
		return startFailed(status, fmt.Errorf("read the start order: %w", err))
	}
	pid, err := startLeader(order, &syscall.SysProcAttr{})
	if err != nil {
		return startFailed(status, err)
	}
	started(status)
	s := groupStopper{pid: pid}
	go s.obey(in, order.OrphanGrace)
	var ws syscall.WaitStatus
	var used syscall.Rusage
	for {
		if _, err := syscall.Wait4(pid, &ws, 0, &used); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	_ = syscall.Kill(-s.pid, syscall.SIGKILL)
	if s.orphaned.Load() {
		_ = dirtree.Remove(order.RunDir, LockFile)
	}
	exit := Exit{
		Code: ws.ExitStatus(), Stopped: s.stopped.Load(), CPU: time.Duration(used.Utime.Nano() + used.Stime.Nano()),
	}
	if ws.Signaled() {
		exit.Signal = ws.Signal().String()
	}
	_ = WriteLine(status, exit)
	return 0
}

// groupStopper stops a process group on the worker's command.
type groupStopper struct {
	pid               int
	stopped, orphaned atomic.Bool
}

// obey reads the control pipe until it ends, which means that the worker died.
func (s *groupStopper) obey(in *bufio.Reader, orphanGrace time.Duration) {
	var kill *time.Timer
	for !s.orphaned.Load() {
		var c Command
		if ReadLine(in, &c) != nil {
			s.orphaned.Store(true)
			c.Grace = orphanGrace
		} else if c == (Command{}) {
			continue // a heartbeat: silence is not watched here
		}
		s.stopped.Store(true)
		if kill == nil {
			_ = syscall.Kill(s.pid, syscall.SIGTERM)
		} else {
			kill.Stop()
		}
		kill = time.AfterFunc(c.Grace, func() { _ = syscall.Kill(-s.pid, syscall.SIGKILL) })
	}
}
