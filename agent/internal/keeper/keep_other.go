//go:build !linux

package keeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// keep is the keeper without a child subreaper. It contains the CLI's process group and outlives the worker as on
// Linux, but a process that has created a session escapes it. For development only; agent.New logs a notice.
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

// These systems have no /proc: there are no sandboxes, and what has lost its keeper cannot be found.

var liveKeepers sync.Map

// ownProgram starts this binary again; a file that was replaced meanwhile would be the new one.
var ownProgram, _ = os.Executable()

func openProgram() (*os.File, error) { return os.Open(ownProgram) }

// sealedPipe is a pipe: there is no /proc by which another process could open it.
func sealedPipe() (r, w *os.File, err error) { return os.Pipe() }

func socketPair() (worker, keeper *os.File, err error) { return nil, nil, errors.ErrUnsupported }
func receiveListener(*os.File) (net.Listener, error)   { return nil, errors.ErrUnsupported }
func children(int) []int                               { return nil }
func suspended(int) bool                               { return false }
func lockLimit() uint64                                { return 0 }
func reapZombies()                                     {}

// BecomeSubreaper does nothing here.
func BecomeSubreaper() error { return nil }

// SweepRun finds nothing here.
func SweepRun(string) int { return 0 }

// SweepDeadWorkers finds nothing here.
func SweepDeadWorkers(context.Context) (int, error) { return 0, nil }

// WorkerMark is empty here, so that nothing is marked.
func WorkerMark() string { return "" }

// MakePrivate returns a notice that this system does not protect a process from others of its user.
func MakePrivate() (notice string, err error) {
	return "this system cannot hide the worker's secrets from the agent's tools; use Linux in production", nil
}

// Private reports false here.
func Private() (ok bool, remedy string) { return false, "use Linux in production" }

// PrivateFromStart reports false here.
func PrivateFromStart() bool { return false }

// WithEnvironment lists nothing here.
func WithEnvironment([]string) []string { return nil }
