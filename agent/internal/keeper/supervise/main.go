package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// called is set once Main has returned: this program, executed again, is a keeper.
var called atomic.Bool

// Called reports whether this process has called Main. If not, a copy of it would not be a keeper but do what this
// program does, and so start further copies.
func Called() bool { return called.Load() }

// Main runs the keeper and exits if this process was started as one, or to mount
// overlays for one. In any other process it returns at once.
func Main() {
	defer called.Store(true)
	if len(os.Args) > 1 && os.Args[1] == OverlayName {
		if err := overlay(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, Name+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if n := len(os.Args); n == 0 || n > 2 || os.Args[n-1] != Name {
		return
	}
	closeFilesOnExec()
	os.Exit(keep(os.NewFile(ControlFD, "control"), os.NewFile(StatusFD, "status")))
}

// closeFilesOnExec keeps all descriptors but the standard ones from the CLI. It would hold the keeper's pipes open, and
// could write to them; and what the worker's parent had left open, a socket or a file of secrets, would reach the
// agent's tools.
func closeFilesOnExec() {
	for fd := ControlFD; fd <= ListenFD; fd++ { // TempFD would lead out of a sandbox
		syscall.CloseOnExec(fd)
	}
	open, _ := os.ReadDir("/dev/fd") // without it the others cannot be listed
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > ListenFD {
			syscall.CloseOnExec(fd)
		}
	}
}

// startLeader starts the CLI as the leader of a new process group, so that what stays in that group can be killed at
// once. It returns its process ID. os/exec would start a further process first, to try out what the kernel can do.
func startLeader(order Order, attributes *syscall.SysProcAttr) (pid int, err error) {
	attributes.Setpgid = true
	process := syscall.ProcAttr{Dir: order.Dir, Env: order.Env, Files: []uintptr{0, 1, 2}, Sys: attributes}
	if order.Secret != "" {
		r, w, err := os.Pipe()
		if err != nil {
			return 0, fmt.Errorf("open the credential pipe: %w", err)
		}
		defer r.Close()
		// A credential is far shorter than a pipe's buffer, so this does not wait for the CLI to read.
		_, err = io.WriteString(w, order.Secret)
		if err = errors.Join(err, w.Close()); err != nil {
			return 0, fmt.Errorf("write the credential pipe: %w", err)
		}
		process.Files = append(process.Files, r.Fd()) // descriptor 3
	}
	if pid, err = syscall.ForkExec(order.Path, order.Args, &process); err != nil {
		return 0, fmt.Errorf("start %s: %w", order.Path, err)
	}
	return pid, nil
}

// startFailed reports to the worker that the CLI was not started, and returns the keeper's exit code.
func startFailed(status *os.File, err error) int {
	s := StartStatus{Error: err.Error()}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		s.Errno = errno
	}
	if WriteLine(status, s) != nil { // it was not started by a worker
		fmt.Fprintln(os.Stderr, Name+":", err)
	}
	return 1
}

// started reports to the worker that the CLI runs. The keeper's own stdin is closed, so that the worker's writes fail
// when the CLI has closed its end.
func started(status *os.File) {
	_ = WriteLine(status, StartStatus{})
	_ = os.Stdin.Close()
}
