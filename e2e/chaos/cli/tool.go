package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// toolArgument makes this program act as a process that a tool has left running.
const toolArgument = "tool"

// tool lives until it is killed or the harness is gone. It ignores all other signals.
func tool() int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	w, err := meet(script.Tool)
	if err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, w.conn)
	return 0
}

// leaveTool starts a tool in a new session, as the CLI does with every command, and detaches from it.
func leaveTool() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.Command(self, toolArgument) //nolint:noctx // it must outlive the caller
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Start() == nil {
		_ = cmd.Process.Release()
	}
}
