package keeper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Main runs the keeper and exits if this process was started as one. In any other process it returns at once.
func Main() {
	if n := len(os.Args); n == 0 || n > 2 || os.Args[n-1] != Name {
		return
	}
	closeFilesOnExec()
	os.Exit(keep(os.NewFile(controlFD, "control"), os.NewFile(statusFD, "status")))
}

// closeFilesOnExec keeps all descriptors but the standard ones from the CLI. It would hold the keeper's pipes open, and could write to
// them; and what the worker's parent had left open, a socket or a file of secrets, would reach the agent's tools.
func closeFilesOnExec() {
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(statusFD)
	open, _ := os.ReadDir("/dev/fd") // without it they cannot be listed
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > statusFD {
			syscall.CloseOnExec(fd)
		}
	}
}

// startLeader starts the CLI as the leader of a new process group, so that what stays in that group can be killed at once.
func startLeader(order Order, attributes *syscall.SysProcAttr) (*exec.Cmd, error) {
	attributes.Setpgid = true
	cmd := &exec.Cmd{
		Path: order.Path, Args: order.Args, Env: order.Env, Dir: order.Dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: attributes,
	}
	if order.Secret != "" {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("open the credential pipe: %w", err)
		}
		defer r.Close()
		// A credential is far shorter than a pipe's buffer, so this does not wait for the CLI to read.
		_, err = io.WriteString(w, order.Secret)
		if err = errors.Join(err, w.Close()); err != nil {
			return nil, fmt.Errorf("write the credential pipe: %w", err)
		}
		cmd.ExtraFiles = []*os.File{r} // descriptor 3
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", order.Path, err)
	}
	return cmd, nil
}

// startFailed reports to the worker that the CLI was not started, and returns the keeper's exit code.
func startFailed(status *os.File, err error) int {
	s := startStatus{Error: err.Error()}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		s.Errno = errno
	}
	_ = writeLine(status, s)
	return 1
}

// started reports to the worker that the CLI runs. The keeper's own stdin is closed, so that the worker's writes fail when the CLI has
// closed its end.
func started(status *os.File) {
	_ = writeLine(status, startStatus{})
	_ = os.Stdin.Close()
}
