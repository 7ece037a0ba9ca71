// Package keeper runs one command so that nothing the command starts can outlive it.
//
// The CLI starts the shell of every tool in a separate session, so no process group contains a run, and a worker can be
// killed at any moment. The keeper is a small process between the two, one per run. Everything the CLI starts is
// re-parented to its keeper, which kills and reaps what is left when the CLI has ended. When the worker's end of the
// control pipe closes, or the worker falls silent, the keeper ends the run. docs/concurrency.md has the measurements.
//
// This package is the worker's side: a [Program] starts a [Process]. Package supervise is the keeper's side. Both
// import only the standard library and x/sys. They need Linux. Functions may be called from any goroutine.
package keeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
)

// Name is the keeper's program, and the argument by which a re-executed binary knows that it is a keeper.
const Name = supervise.Name

// What worker and keeper say to each other.
type (
	Order = supervise.Order
	Exit  = supervise.Exit

	Overlay = supervise.Overlay
)

// Time limits of a keeper.
const (
	OrphanGrace   = supervise.OrphanGrace
	WorkerTimeout = supervise.WorkerTimeout
	EndTimeout    = supervise.EndTimeout
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

// startTimeout bounds how long a keeper takes to report that the CLI runs.
const startTimeout = time.Minute

// Process is a command that runs under a keeper, as the worker sees it.
type Process struct {
	Stdin  *os.File // to the CLI; written and closed by one goroutine
	Stdout *os.File // from the CLI and everything it started; ends when the last of them is dead
	Stderr *os.File

	Listeners []net.Listener // one for each of Order.Ports, inside the sandbox's network

	// Set when Done is closed.
	Exit Exit
	Err  error // the keeper died before it wrote its Exit

	keeper  *os.Process // or, in a sandbox, bubblewrap, whose only child the keeper is
	sandbox bool
	done    chan struct{}

	group     *group // nil: runs have none here
	maxMemory int64  // of the order

	controlMu sync.Mutex
	control   *os.File
}

// Sandbox is how bubblewrap starts a keeper. The zero value starts it without a sandbox.
type Sandbox struct {
	Args    []string                 // bubblewrap's command line up to the program
	Seccomp func() (*os.File, error) // opens the filter for bubblewrap

	Overlays []Overlay // are mounted first, where only bubblewrap sees them
}

// Start starts the command of an order under a new keeper. The error is or wraps a *StartError if the command could not
// be executed, and an *Unavailable if there is no program for keepers. ctx bounds the start, not the command.
func (p *Program) Start(ctx context.Context, order Order, s Sandbox) (*Process, error) {
	program, unavailable := p.open(ctx)
	if unavailable != nil {
		return nil, unavailable
	}
	c, err := openChannels(order)
	if err != nil {
		return nil, fmt.Errorf("open pipes: %w", err)
	}
	cmd, own, err := p.startKeeper(program.file, c, order, s)
	if err != nil {
		c.closeWorkerEnds()
		return nil, fmt.Errorf("start keeper: %w", err)
	}
	if len(s.Args) > 0 { // there RunDir is a mount point, which cannot be removed
		order.RunDir = fmt.Sprintf("/proc/self/fd/%d/%s", supervise.TempFD, filepath.Base(order.RunDir))
	} else { // in a sandbox nothing survives its keeper, so no mark is needed
		order.LockLimit = lockLimit()
	}
	process := &Process{
		Stdin: c.stdin.worker, Stdout: c.stdout.worker, Stderr: c.stderr.worker, control: c.control.worker,
		keeper: cmd.Process, sandbox: len(s.Args) > 0, done: make(chan struct{}),
		group: own, maxMemory: order.MaxMemory,
	}
	status := bufio.NewReaderSize(c.status.worker, 256)
	err = process.sendOrder(ctx, order, c.status.worker, status)
	for i := 0; err == nil && i < len(order.Ports); i++ {
		var l net.Listener
		if l, err = receiveListener(c.sockets.worker); err == nil {
			process.Listeners = append(process.Listeners, l)
		}
	}
	_ = c.sockets.worker.Close()
	if err != nil {
		return nil, process.abandon(cmd, c, err)
	}
	go process.await(cmd, c.status.worker, status)
	if order.WorkerTimeout > 0 {
		pulse.add(process, min(time.Second, order.WorkerTimeout/supervise.HeartbeatsPerLimit))
	}
	go process.watch(time.Second)
	return process, nil
}

// startKeeper starts the process of a keeper, in a separate group if that is possible, and closes the keeper's ends of
// the channels.
func (p *Program) startKeeper(program *os.File, c *channels, order Order, s Sandbox) (*exec.Cmd, *group, error) {
	defer c.closeKeeperEnds()
	own, err := p.Groups.open(order)
	if own != nil {
		var cmd *exec.Cmd
		if cmd, err = spawn(program, c, order, s, own); err == nil {
			return cmd, own, nil
		}
		own.remove()
	}
	if err != nil && p.Log != nil {
		p.Log.Warn("start a run in a control group; only its keeper limits its memory and processes", "err", err)
	}
	cmd, err := spawn(program, c, order, s, nil)
	return cmd, nil, err
}

// spawn starts the process of a keeper.
func spawn(program *os.File, c *channels, order Order, s Sandbox, in *group) (*exec.Cmd, error) {
	stat := ownStat()
	defer stat.Close()
	cmd := &exec.Cmd{
		Path: executable(program), Args: []string{Name}, Dir: "/",
		// A sleeping process needs one processor and a small heap; GOMAXPROCS limits its threads and their memory.
		Env:   []string{"GOMAXPROCS=1", "GOGC=10", "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"},
		Stdin: c.stdin.keeper, Stdout: c.stdout.keeper, Stderr: c.stderr.keeper,
		// Executing a file by its descriptor needs the descriptor among these: to its pipe for errors the Go runtime
		// gives, in the child, the number above the highest one that it knows of (forkAndExecInChild1).
		ExtraFiles: []*os.File{c.control.keeper, c.status.keeper, program, stat},
		// In a new session: a terminal's Ctrl-C and hang-up concern the worker, and the agent must not reach a
		// terminal.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if len(s.Args) > 0 {
		files, err := s.wrap(cmd, filepath.Dir(order.RunDir))
		if err != nil {
			return nil, err
		}
		defer closeAll(files)
	}
	if c.sockets.keeper != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.sockets.keeper)
	}
	in.join(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	liveKeepers.Store(cmd.Process.Pid, nil) // before it knows what to start
	return cmd, nil
}

// wrap turns the command of a keeper into one of bubblewrap. The files belong to the new process: close them once it
// has started.
func (s Sandbox) wrap(cmd *exec.Cmd, temp string) (files []*os.File, err error) {
	for _, open := range []func() (*os.File, error){func() (*os.File, error) { return os.Open(temp) }, s.Seccomp} {
		f, err := open()
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("open a file for the sandbox: %w", err)
		}
		files = append(files, f)
	}
	cmd.Path = s.Args[0]
	cmd.Args = slices.Insert(slices.Clone(s.Args), 1, "--seccomp", strconv.Itoa(supervise.FilterFD))
	cmd.Args = append(cmd.Args, fmt.Sprintf("/proc/self/fd/%d", supervise.ProgramFD), Name)
	cmd.ExtraFiles = append(cmd.ExtraFiles, files...)
	if len(s.Overlays) > 0 {
		err = overlaid(cmd, supervise.ProgramFD, s.Overlays)
	}
	return files, err
}

// sendOrder sends the order and waits until the keeper reports that the CLI runs.
func (p *Process) sendOrder(ctx context.Context, order Order, f *os.File, status *bufio.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	unblock := context.AfterFunc(ctx, func() {
		_ = p.control.SetWriteDeadline(time.Now())
		_ = f.SetReadDeadline(time.Now())
	})
	var started supervise.StartStatus
	err := supervise.WriteLine(p.control, order)
	if err == nil {
		err = supervise.ReadLine(status, &started)
	}
	if !unblock() { // even if the CLI has just started: the deadlines are set
		p.Kill() // the keeper hangs, perhaps on the file system that the CLI is on
		_ = p.keeper.Kill()
		return context.Cause(ctx)
	}
	if err == nil && started.Error != "" {
		return &StartError{Message: started.Error, Errno: started.Errno}
	}
	return err
}

// abandon closes everything after a start that failed with err, and returns err with the last line that the keeper, or
// bubblewrap, wrote to stderr.
func (p *Process) abandon(cmd *exec.Cmd, c *channels, err error) error {
	closeAll([]*os.File{p.Stdin, p.Stdout, p.control, c.status.worker})
	for _, l := range p.Listeners {
		_ = l.Close()
	}
	_ = cmd.Wait()
	liveKeepers.Delete(cmd.Process.Pid)
	_ = p.Stderr.SetReadDeadline(time.Now().Add(time.Second))
	text, _ := io.ReadAll(io.LimitReader(p.Stderr, 4<<10))
	_ = p.Stderr.Close()
	p.group.remove()
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		err = fmt.Errorf("%w (%s)", err, last)
	}
	return fmt.Errorf("start the CLI: %w", err)
}

// await waits for the keeper to exit.
func (p *Process) await(cmd *exec.Cmd, f *os.File, status *bufio.Reader) {
	err := supervise.ReadLine(status, &p.Exit)
	_ = f.Close()
	if p.Exit.Stuck > 0 {
		_ = cmd.Process.Kill() // bubblewrap would wait until they are dead
	}
	waitErr := cmd.Wait()
	liveKeepers.Delete(cmd.Process.Pid)
	if err != nil {
		p.Exit = Exit{Code: -1, Signal: "SIGKILL", KeeperDied: true} // the kernel kills the CLI then
		p.Err = fmt.Errorf("read the exit status from the keeper: %w", errors.Join(err, waitErr))
	}
	if p.Exit.Memory == 0 && p.group.outOfMemory() > 0 {
		p.Exit.Memory = p.maxMemory
	}
	p.group.remove()
	p.controlMu.Lock()
	_ = p.control.Close()
	p.controlMu.Unlock()
	close(p.done)
}

// watch checks the keeper again and again until it exits.
func (p *Process) watch(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	full := false
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		if !p.sandbox && suspended(p.keeper.Pid) { // in a sandbox no tool can stop the keeper
			p.Kill() // it could neither count nor end what the run starts
		}
		if !full && p.group.outOfMemory() > 0 {
			full = true
			p.Term(time.Millisecond) // the rest of the run would work with half of its processes
		}
	}
}

// Done is closed when the keeper has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// PID returns the process ID of the keeper, or of its bubblewrap.
func (p *Process) PID() int { return p.keeper.Pid }

// Term asks the keeper to TERM the CLI and to KILL it after grace. A later call can only shorten the grace. A keeper
// that is gone is no error: the run is over then.
func (p *Process) Term(grace time.Duration) {
	p.controlMu.Lock()
	defer p.controlMu.Unlock()
	c := supervise.Command{Sent: supervise.SinceBoot(), Grace: max(grace, time.Millisecond)}
	_ = supervise.WriteLine(p.control, c)
}

// Kill kills a keeper that does not do its work, and the CLI with it. What the CLI had started may survive: see
// SweepRun.
func (p *Process) Kill() {
	if p.sandbox {
		for _, pid := range children(p.keeper.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return
	}
	_ = p.keeper.Kill()
}

// WaitAll returns when every process of the run is dead and drained is closed, which means that all its output was
// read. A keeper that is alive after limit is killed, and onTimeout is called first.
func (p *Process) WaitAll(run string, limit time.Duration, drained <-chan struct{}, onTimeout func()) {
	select {
	case <-p.done:
	case <-time.After(limit):
		onTimeout()
		p.Kill()
		<-p.done
	}
	if p.Err != nil {
		// The keeper was killed, and the kernel has killed the CLI with it. What its tools left was adopted by this
		// process or is found by its marker, and until that is dead the pipes may stay open. A process that is about to
		// execute another shows no environment.
		p.Exit.Swept = sweepUntil(drained, run)
	}
	if p.Err != nil || p.Exit.Stuck > 0 { // a process may hold the pipes open
		_ = p.Stdout.SetReadDeadline(time.Now().Add(time.Second))
		_ = p.Stderr.SetReadDeadline(time.Now().Add(time.Second))
	}
	<-drained
	reapZombies()
}

// sweepUntil sweeps a run until drained is closed, but not for longer than a second, in case an unmarked process holds
// the pipes open. A process that does not die costs supervise.KillTimeout once.
func sweepUntil(drained <-chan struct{}, run string) (swept int) {
	stop := time.Now().Add(supervise.KillTimeout)
	for n := 0; n < 50 && time.Now().Before(stop); n++ {
		swept += SweepRun(run)
		select {
		case <-drained:
			return swept
		case <-time.After(20 * time.Millisecond):
		}
	}
	return swept
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
