package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// toolArgument makes this program a process that a tool has left running.
const toolArgument = "tool"

// tool lives until somebody kills it, or until the harness is gone. It ignores all that asks it to end.
func tool() int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	w, err := meet(script.Tool)
	if err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, w.conn)
	return 0
}

// leaveTool starts one in a session of its own, as the CLI does with every command, and lets go of it.
func leaveTool() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.Command(self, toolArgument) //nolint:noctx // it is to outlive whatever we are doing
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Start() == nil {
		_ = cmd.Process.Release()
	}
}
