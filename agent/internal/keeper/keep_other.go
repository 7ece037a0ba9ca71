//go:build !linux

package keeper

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// keep is the keeper without a child subreaper: it contains the CLI's process group, and outlives the worker as on Linux, but a
// process that made a session of its own escapes it. Only for development; Runner.New logs a notice.
func keep(control, status *os.File) int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE)
	in := bufio.NewReader(control)
	var order startOrder
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &order)
	}
	if err != nil {
		say(status, startStatus{Error: fmt.Sprintf("read the start order: %v", err)})
		return 1
	}
	cmd := &exec.Cmd{
		Path: order.Path, Args: order.Args, Env: order.Env, Dir: order.Dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if order.Secret != "" {
		r, w, err := os.Pipe()
		if err != nil {
			say(status, startStatus{Error: err.Error()})
			return 1
		}
		_, _ = w.WriteString(order.Secret)
		_ = w.Close()
		cmd.ExtraFiles = []*os.File{r}
	}
	if err := cmd.Start(); err != nil {
		say(status, startStatus{Error: err.Error()})
		return 1
	}
	pid := cmd.Process.Pid
	say(status, startStatus{})
	_ = os.Stdin.Close()
	orphaned := make(chan bool, 1)
	var stopped atomic.Bool
	go func() {
		var kill *time.Timer
		for {
			var c command
			line, err := in.ReadBytes('\n')
			if err != nil {
				orphaned <- true
				c.Term = order.Orphan
			} else if json.Unmarshal(line, &c) != nil {
				return
			} else if c == (command{}) {
				continue // a beat, of which is nothing made here
			}
			stopped.Store(true)
			if kill == nil {
				_ = syscall.Kill(pid, syscall.SIGTERM)
			} else {
				kill.Stop()
			}
			kill = time.AfterFunc(c.Term, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
			if err != nil {
				return
			}
		}
	}()
	_ = cmd.Wait()
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	select {
	case <-orphaned:
		_ = os.RemoveAll(order.Remove)
	default:
	}
	final := exitStatus{Code: cmd.ProcessState.ExitCode(), Stopped: stopped.Load(), CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		final.Signal = ws.Signal().String()
	}
	say(status, final)
	return 0
}

// children are not known here, where there is no sandbox either.
func children(int) []int { return nil }
