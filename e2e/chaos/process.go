package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/internal/fake/container"
)

// process is one of errand's programs, which can be started repeatedly. Its methods may be called from any goroutine.
type process struct {
	name string   // of its log, too
	dirs []string // of its versions, which take turns
	file string
	args []string
	env  []string
	logs string // directory
	addr string // where it listens
	pool string // of a worker

	in       *container.Container // of a worker that takes one task
	restarts sync.Mutex           // held while it is started again by itself
	retired  bool                 // it is not started again; guarded by restarts

	mu      sync.Mutex
	present *exec.Cmd
	exited  chan struct{} // of present; closed when it is reaped
	meant   bool          // present was asked to end
	surplus int           // number of unexpected ends
	pids    []int         // of all its lives
	begun   []time.Time   // when each was started
	exits   []exit        // unexpected, of a worker that takes one task
}

// exit is how a life of a worker ended by itself.
type exit struct {
	worker string // name
	pid    int
	code   int // -1: by a signal
	window
}

// restartAfter is Docker's first pause before it starts a container again.
const restartAfter = 100 * time.Millisecond

// start starts the program. The kernel kills it when the thread that started it ends, so that thread is kept
// (golang/go#27505).
func (p *process) start() error {
	log, err := os.OpenFile(filepath.Join(p.logs, p.name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.path(), p.args...) //nolint:noctx,gosec // it ends when the plan says so; the path is the harness's own flag
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.in != nil {
		if err := p.in.Wrap(cmd); err != nil {
			return fmt.Errorf("start %s: %w", p.name, err)
		}
	}
	exited := make(chan struct{})
	started, now := make(chan error), time.Now()
	p.mu.Lock()
	p.meant = false
	p.mu.Unlock()
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil { // before its end, after which a container starts again
			p.mu.Lock()
			p.present, p.exited = cmd, exited
			p.pids, p.begun = append(p.pids, cmd.Process.Pid), append(p.begun, now)
			p.mu.Unlock()
		}
		started <- err
		if err == nil {
			_ = cmd.Wait()
			p.mu.Lock()
			meant := p.meant
			if !meant && p.in != nil {
				p.exits = append(p.exits, exit{
					p.name, cmd.Process.Pid, cmd.ProcessState.ExitCode(), window{now, time.Now()},
				})
			} else if !meant {
				p.surplus++
			}
			close(exited)
			p.mu.Unlock()
			if !meant && p.in != nil {
				p.restart()
			}
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	return nil
}

// restart starts a worker again that took one task, as its orchestrator does.
func (p *process) restart() {
	<-time.After(restartAfter)
	p.restarts.Lock()
	defer p.restarts.Unlock()
	if p.retired {
		return
	}
	if err := p.start(); err != nil { // an operating system without resources; the checks find the missing worker
		p.mu.Lock()
		defer p.mu.Unlock()
		p.exits = append(p.exits, exit{p.name, 0, -1, window{time.Now(), time.Now()}})
	}
}

// retire makes the next end of a worker its last.
func (p *process) retire() {
	p.restarts.Lock()
	defer p.restarts.Unlock()
	p.retired = true
}

// path returns the program for the next start.
func (p *process) path() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return filepath.Join(p.dirs[len(p.pids)%len(p.dirs)], p.file)
}

// count adds the starts of each version.
func (p *process) count(starts map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.pids {
		starts[p.file+" of "+p.dirs[i%len(p.dirs)]]++
	}
}

// pid returns 0 if the program is not running.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.present == nil {
		return 0
	}
	select {
	case <-p.exited:
		return 0
	default:
		return p.present.Process.Pid
	}
}

// errDead means that the process had already ended.
var errDead = errors.New("it does not run")

// end sends a signal and waits until the process is reaped. After patience it kills the process and returns an error.
func (p *process) end(sig syscall.Signal, patience time.Duration) error {
	p.mu.Lock()
	cmd, exited := p.present, p.exited
	if cmd == nil {
		p.mu.Unlock()
		return errDead
	}
	select {
	case <-exited:
		p.mu.Unlock()
		return errDead
	default:
	}
	p.meant = true
	err := cmd.Process.Signal(sig)
	p.mu.Unlock()
	if errors.Is(err, os.ErrProcessDone) { // just now
		<-exited
		return nil
	}
	if err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-exited:
		return nil
	case <-ctx.Done():
	}
	_ = cmd.Process.Kill()
	<-exited
	return fmt.Errorf("stop %s: it did not end within %s", p.name, patience)
}

// unasked returns the number of unexpected ends.
func (p *process) unasked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.surplus
}

// ended returns how its lives ended by themselves.
func (p *process) ended() []exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.exits)
}

// memberships returns the pool of each of its lives.
func (p *process) memberships() (list []membership) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, pid := range p.pids {
		list = append(list, membership{pid, p.begun[i], p.pool})
	}
	return list
}

// ever returns all PIDs so far.
func (p *process) ever() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.pids)
}
