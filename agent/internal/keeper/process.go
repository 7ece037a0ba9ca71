package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// child is the worker's side of a keeper. Its methods may be called from any goroutine.
type child struct {
	Stdin  *os.File // to the CLI; written and closed by the stdin writer alone
	Stdout *os.File // from the CLI and everything it started; ends when the last of them is dead
	Stderr *os.File

	gateway net.Listener // in the network of a run that is alone; nil for others

	keeper *os.Process // or, in a sandbox, bubblewrap, whose only child the keeper is
	boxed  bool
	done   chan struct{} // closed after exit is set
	exit   exitStatus
	err    error // the keeper did not give its last word

	controlMu sync.Mutex
	control   *os.File
}

// startChild starts the CLI under a keeper of its own, in a box. A failure to start the CLI itself is a *startError. ctx is for the start
// alone.
func startChild(ctx context.Context, order startOrder, b box) (_ *child, err error) {
	var opened []*os.File
	open := func(ends func() (r, w *os.File, err error)) (r, w *os.File) {
		if err == nil {
			if r, w, err = ends(); err == nil {
				opened = append(opened, r, w)
			}
		}
		return r, w
	}
	pipe := func() (r, w *os.File) { return open(os.Pipe) }
	speech := os.Pipe
	if order.Sealed {
		speech = sealedPipe
	}
	stdinR, stdinW := open(speech)
	stdoutR, stdoutW := open(speech)
	stderrR, stderrW := pipe() // by its name, /dev/stderr, it may be opened: nothing is decided by what is written there
	controlR, controlW := pipe()
	statusR, statusW := pipe()
	closeAll := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	if err != nil {
		closeAll(opened)
		return nil, fmt.Errorf("open pipes: %w", err)
	}
	cmd := &exec.Cmd{
		Path: selfExecutable, Args: []string{keeperName}, Dir: "/",
		// One processor is plenty for a process that sleeps; GOMAXPROCS keeps its threads, and so its memory, few.
		Env:   []string{"GOMAXPROCS=1", "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"}, // the last for tests with -race
		Stdin: stdinR, Stdout: stdoutW, Stderr: stderrW,
		ExtraFiles: []*os.File{controlR, statusW},
		// A session of its own: a terminal's Ctrl-C and hang-up are the worker's affair, and the agent has no terminal to touch.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	for _, theirs := range []*os.File{stdinR, stdoutW} {
		_ = syscall.SetNonblock(int(theirs.Fd()), false) // as programs expect theirs to be; os does it for its own pipes alone
	}
	inherited, err := b.enter(cmd)
	var lends *os.File // by which the keeper hands out the gateway's socket
	if err == nil && b.alone {
		var theirs *os.File
		if lends, theirs, err = socketPair(); err == nil {
			defer lends.Close()
			cmd.ExtraFiles, inherited = append(cmd.ExtraFiles, theirs), append(inherited, theirs)
		}
	}
	if err == nil {
		if err = cmd.Start(); err == nil {
			keepers.Store(cmd.Process.Pid, nil) // before it is told what to start
		}
	}
	closeAll(append(inherited, stdinR, stdoutW, stderrW, controlR, statusW))
	if err != nil {
		closeAll([]*os.File{stdinW, stdoutR, stderrR, controlW, statusR})
		return nil, fmt.Errorf("start keeper: %w", err)
	}
	c := &child{Stdin: stdinW, Stdout: stdoutR, Stderr: stderrR, control: controlW, keeper: cmd.Process, boxed: len(b.bwrap) > 0, done: make(chan struct{})}
	status := bufio.NewReader(statusR)
	var started startStatus
	ctx, cancel := context.WithTimeout(ctx, startWord)
	defer cancel()
	unblock := context.AfterFunc(ctx, func() {
		_ = controlW.SetWriteDeadline(time.Now())
		_ = statusR.SetReadDeadline(time.Now())
	})
	if err = c.command(order); err == nil {
		err = readStatus(status, &started)
	}
	if !unblock() {
		err = context.Cause(ctx) // also in the moment in which it has started: the deadlines are set
	}
	if err == nil && started.Error != "" {
		err = &startError{Message: started.Error, Errno: syscall.Errno(started.Errno)}
	}
	if err == nil && lends != nil {
		c.gateway, err = lent(lends)
	}
	if err != nil {
		closeAll([]*os.File{stdinW, stdoutR, controlW, statusR})
		if ctx.Err() != nil { // it hangs, perhaps on the file system that the CLI is on
			c.Kill()
			_ = c.keeper.Kill() // bubblewrap, when it had not come as far as to start one
		}
		_ = cmd.Wait()
		keepers.Delete(c.keeper.Pid)
		// Its last words: bubblewrap's, or of a keeper that panicked.
		_ = stderrR.SetReadDeadline(time.Now().Add(time.Second))
		words, _ := io.ReadAll(io.LimitReader(stderrR, 4<<10))
		_ = stderrR.Close()
		if last := lastLine(string(words)); last != "" {
			err = fmt.Errorf("%w (%s)", err, last)
		}
		return nil, fmt.Errorf("start the CLI: %w", err)
	}
	go c.await(cmd, statusR, status)
	if order.Silent > 0 {
		go c.beat(order.Silent / beats)
	}
	if !c.boxed { // in a sandbox no tool can stop it
		go c.mind()
	}
	return c, nil
}

// startWord bounds how long a keeper takes to say that the CLI runs.
const startWord = time.Minute

// await owns the keeper's process and the status pipe.
func (c *child) await(cmd *exec.Cmd, f *os.File, status *bufio.Reader) {
	err := readStatus(status, &c.exit)
	_ = f.Close()
	if c.exit.Stuck > 0 {
		_ = cmd.Process.Kill() // bubblewrap would wait until they are dead
	}
	werr := cmd.Wait()
	keepers.Delete(cmd.Process.Pid)
	if err != nil {
		c.exit = exitStatus{Code: -1, Signal: "SIGKILL", keeperDied: true} // what the kernel does to the CLI then
		c.err = fmt.Errorf("read the last word of the keeper: %w", errors.Join(err, werr))
	}
	c.controlMu.Lock()
	_ = c.control.Close()
	c.controlMu.Unlock()
	close(c.done)
}

// beat tells the keeper that this process is alive. It waits for nothing but the pipe, and not long for that: a keeper that does not read
// must not keep Term waiting.
func (c *child) beat(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
			_ = c.command(command{})
		}
	}
}

// mind kills a keeper that was stopped: by a tool, since nobody else would. It could neither count nor end what the run starts.
func (c *child) mind() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
			if stoppedProcess(c.keeper.Pid) {
				c.Kill()
			}
		}
	}
}

// Term asks the keeper to TERM the CLI and to KILL it after grace; at most the first call counts.
func (c *child) Term(grace time.Duration) { _ = c.command(command{Term: max(grace, time.Millisecond)}) }

// Kill ends a keeper that does not do its work, because a tool has stopped it for one, and the CLI with it. What the CLI had started is then
// left to the caller.
func (c *child) Kill() {
	if c.boxed {
		for _, pid := range children(c.keeper.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return
	}
	_ = c.keeper.Kill()
}

// command writes one line to the keeper. That the keeper is gone is no error: the run is over then, and done says so.
func (c *child) command(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("marshal keeper command: %w", err)
	}
	c.controlMu.Lock()
	defer c.controlMu.Unlock()
	if v == (command{}) { // short enough for the pipe to take it as a whole or not at all
		_ = c.control.SetWriteDeadline(time.Now().Add(time.Second))
		defer func() { _ = c.control.SetWriteDeadline(time.Time{}) }()
	}
	_, err = c.control.Write(append(line, '\n'))
	return err
}

// startError says that the CLI could not be executed at all.
type startError struct {
	Message string
	Errno   syscall.Errno
}

func (e *startError) Error() string { return e.Message }
func (e *startError) Unwrap() error { return e.Errno }

func readStatus(r *bufio.Reader, v any) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		if len(line) == 0 && err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	return json.Unmarshal(line, v)
}
