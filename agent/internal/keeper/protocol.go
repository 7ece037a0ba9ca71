// Package keeper runs one command so that nothing the command starts can outlive it.
//
// The CLI starts the shell of every tool in a separate session, so no process group contains a run, and a worker can be
// killed at any moment. The keeper is a small process between the two, one per run. Everything the CLI starts is
// re-parented to its keeper, which kills and reaps what is left when the CLI has ended. When the worker's end of the
// control pipe closes, or the worker falls silent, the keeper ends the run. docs/concurrency.md has the measurements.
//
// [Start] and [Process] are the worker's side, [Main] is the keeper's; this file has all that they say to each other.
// The package imports the standard library and x/sys only. Its functions may be called from any goroutine. On systems
// other than Linux a keeper contains no more than the CLI's process group: see keep_other.go.
package keeper

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// Name is a keeper's last argument, by which a re-executed binary knows that it is one. It is the only argument, the
// one that `ps` shows, except in a sandbox: bubblewrap always passes the path of its program as argv[0].
const Name = "errand-keeper"

// File descriptors of a keeper, after the CLI's stdin, stdout and stderr.
const (
	controlFD = 3 // reads the Order, then one command per line; its end means that the worker is gone
	statusFD  = 4 // writes one startStatus and one Exit, as JSON lines

	// In a sandbox only.
	programFD = 5 // the keeper's program, which may not be visible inside
	tempFD    = 6 // the parent of Order.RunDir, outside the sandbox
	filterFD  = 7 // the seccomp filter; bubblewrap reads and closes it
	gatewayFD = 8 // with Order.GatewayPort: passes the listening socket to the worker
)

// Order is the first line of the control pipe. It carries what must not be seen in /proc: arguments and environment are
// those of the CLI, and the credential goes through a pipe.
type Order struct {
	Path          string        `json:"path"`
	Args          []string      `json:"args"` // with argv[0]
	Env           []string      `json:"env"`
	Dir           string        `json:"dir"`
	GatewayPort   int           `json:"gateway_port,omitempty"`   // in a sandbox: listen on this port of loopback and pass the socket to the worker; 0: no
	Secret        string        `json:"secret,omitempty"`         // readable for the CLI at descriptor 3; empty: none
	OrphanGrace   time.Duration `json:"orphan_grace"`             // from TERM to KILL when the worker died
	WorkerTimeout time.Duration `json:"worker_timeout,omitempty"` // silence of the worker after which the run is ended; 0: never
	MaxProcesses  int           `json:"max_processes,omitempty"`  // processes and threads above which the run is ended; 0: no limit
	RunDir        string        `json:"run_dir,omitempty"`        // the run's own directory, which the keeper removes when the worker died
	LockLimit     uint64        `json:"lock_limit,omitempty"`     // the mark of every process of the run, set by Start: see lockLimit; 0: none

	// Sealed makes stdin and stdout a protocol that no other process can open. Scripts get pipes, because they write to
	// /dev/stdout by name.
	Sealed bool `json:"-"`
}

// command is a further line of the control pipe: TERM the CLI now, and KILL it after Grace. A later one can only
// shorten the grace. The zero command is a heartbeat: it says that the worker is alive.
type command struct {
	Grace time.Duration `json:"grace,omitempty"`
}

// startStatus is the keeper's first line. An empty Error means that the CLI has started.
type startStatus struct {
	Error string        `json:"error,omitempty"`
	Errno syscall.Errno `json:"errno,omitempty"`
}

// Exit is the keeper's last line. After it, no process of the run is alive except the Stuck ones.
type Exit struct {
	Code      int           `json:"code"`             // -1 if a signal ended the CLI
	Signal    string        `json:"signal,omitempty"` // name of that signal
	Stopped   bool          `json:"stopped"`          // the CLI was alive when the keeper stopped it
	Silence   time.Duration `json:"silence"`          // how long the worker was silent if that ended the run; 0: it did not
	Processes int           `json:"processes"`        // number of processes and threads if that ended the run; 0: it did not
	OOM       int64         `json:"oom"`              // processes of the keeper's memory cgroup that ran out of memory meanwhile
	Swept     int           `json:"swept"`            // processes that had outlived the CLI and were killed
	Stuck     int           `json:"stuck"`            // processes that did not die within killTimeout
	CPU       time.Duration `json:"cpu"`
	MaxRSS    int64         `json:"max_rss"`

	KeeperDied bool `json:"-"` // the keeper wrote no Exit; set by the worker
}

// killTimeout bounds how long a keeper waits for processes that do not die of SIGKILL: those in uninterruptible sleep.
const killTimeout = 10 * time.Second

// EndTimeout bounds how long a worker waits for a keeper that has to end its run: the keeper gives up after one
// killTimeout for the CLI and one for the rest.
const EndTimeout = 2*killTimeout + 5*time.Second

// OrphanGrace is how long the CLI has between TERM and KILL when its worker died. The CLI needs up to 3.3 s. Everything
// must be over within 8 s, before another worker can take the thread over (16 s at the earliest).
const OrphanGrace = 5 * time.Second

// A worker may be alive and do nothing: it is stopped, thrashes, or its machine was suspended. Its claim then expires
// like that of a dead worker. So it sends a heartbeat every second, and the run of a worker that does not is over
// WorkerTimeout and silenceGrace after its last heartbeat. Another worker can take the thread 16 s after the claim was
// renewed, which may have been 5 s before that heartbeat (docs/concurrency.md).
const (
	WorkerTimeout      = 6 * time.Second
	silenceGrace       = 3 * time.Second
	heartbeatsPerLimit = 6
)

// Environment variables by which SweepRun and SweepDeadWorkers find processes.
const (
	RunVariable    = "ERRAND_RUN"    // the run's ID
	WorkerVariable = "ERRAND_WORKER" // WorkerMark of the worker
)

// StartError says that the CLI could not be executed.
type StartError struct {
	Message string
	Errno   syscall.Errno
}

func (e *StartError) Error() string { return e.Message }
func (e *StartError) Unwrap() error { return e.Errno }

// writeLine writes one JSON line. It errs only if the other side is gone.
func writeLine(f *os.File, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		panic("marshal a line of the keeper's protocol: " + err.Error()) // the types above can be marshalled
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// readLine reads one JSON line.
func readLine(r *bufio.Reader, v any) error {
	line, err := r.ReadBytes('\n')
	if err == io.EOF && len(line) == 0 {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// Main runs the keeper and exits if this process was started as one. In any other process it returns at once.
func Main() {
	if n := len(os.Args); n == 0 || n > 2 || os.Args[n-1] != Name {
		return
	}
	closeFilesOnExec()
	os.Exit(keep(os.NewFile(controlFD, "control"), os.NewFile(statusFD, "status")))
}

// closeFilesOnExec keeps all descriptors but the standard ones from the CLI. It would hold the keeper's pipes open, and
// could write to them; and what the worker's parent had left open, a socket or a file of secrets, would reach the
// agent's tools.
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

// startLeader starts the CLI as the leader of a new process group, so that what stays in that group can be killed at
// once.
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

// started reports to the worker that the CLI runs. The keeper's own stdin is closed, so that the worker's writes fail
// when the CLI has closed its end.
func started(status *os.File) {
	_ = writeLine(status, startStatus{})
	_ = os.Stdin.Close()
}
