//go:build !linux

package keeper

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// keep is the keeper without a child subreaper. It contains the CLI's process group and outlives the worker as on Linux, but a process
// that has created a session escapes it. For development only; agent.New logs a notice.
func keep(control, status *os.File) int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE)
	in := bufio.NewReader(control)
	var order Order
	if err := readLine(in, &order); err != nil {
		return startFailed(status, fmt.Errorf("read the start order: %w", err))
	}
	cmd, err := startLeader(order, &syscall.SysProcAttr{})
	if err != nil {
		return startFailed(status, err)
	}
	started(status)
	s := groupStopper{pid: cmd.Process.Pid}
	go s.obey(in, order.OrphanGrace)
	_ = cmd.Wait()
	_ = syscall.Kill(-s.pid, syscall.SIGKILL)
	if s.orphaned.Load() {
		_ = os.RemoveAll(order.RunDir)
	}
	state := cmd.ProcessState
	exit := Exit{Code: state.ExitCode(), Stopped: s.stopped.Load(), CPU: state.UserTime() + state.SystemTime()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		exit.Signal = ws.Signal().String()
	}
	_ = writeLine(status, exit)
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
		var c command
		if readLine(in, &c) != nil {
			s.orphaned.Store(true)
			c.Grace = orphanGrace
		} else if c == (command{}) {
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
