package keeper

import (
	"bufio"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// governor rules over a leader until it is dead.
type governor struct {
	pid   int
	order startOrder
	heard atomic.Int64 // when the worker said its last word, by sinceBoot

	kill     time.Time        // when the leader is to be killed; zero: not at all
	deadline <-chan time.Time // at which that is
	hopeless <-chan time.Time // when a leader that was killed is given up
	quiet    int              // looks in a row that found the worker silent
	looked   time.Duration    // when listen was called last, by sinceBoot
	threads  uint16           // of the machine, when ours were counted, at counted
	counted  time.Time

	orphaned  bool          // the worker died
	stopped   bool          // the leader was told to end, by whomever
	silence   time.Duration // the worker's, when it ended the run
	processes int           // processes and threads, when their number did
}

// govern obeys the control pipe until the leader is dead (and still a zombie, so that its process group cannot be reused), and reaps
// orphans of its tools as they die. A leader that does not die of KILL, because it is in uninterruptible sleep, is given up after sweepLimit.
func (g *governor) govern(in *bufio.Reader) {
	g.looked = sinceBoot()
	g.heard.Store(int64(g.looked))
	dead, commands := make(chan struct{}), make(chan command)
	go func() {
		defer close(dead)
		for {
			err := unix.Waitid(unix.P_PID, g.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	go func() {
		defer close(commands)
		g.hear(in, commands, dead)
	}()
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	defer signal.Stop(died)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-dead:
			return
		case <-g.hopeless:
			return
		case <-died:
			reapOrphans(g.pid)
		case <-g.deadline:
			g.killLeader()
		case <-look.C:
			g.listen()
			g.count()
		case c, ok := <-commands:
			if ok {
				g.term(c.Term)
				continue
			}
			commands, g.orphaned = nil, true
			g.term(g.order.Orphan)
		}
	}
}

// hear reads the control pipe until it ends.
func (g *governor) hear(in *bufio.Reader, commands chan<- command, dead <-chan struct{}) {
	for {
		var c command
		if readLine(in, &c) != nil {
			return
		}
		g.heard.Store(int64(sinceBoot()))
		if c == (command{}) {
			continue
		}
		select {
		case commands <- c:
		case <-dead:
			return
		}
	}
}

// term asks the leader to end, and has it killed after grace.
func (g *governor) term(grace time.Duration) {
	if over(g.pid) {
		return // of itself, in this moment
	}
	at := time.Now().Add(grace)
	if !g.stopped {
		// To the leader alone: it is the only one that can end its tools in an orderly way. A stopped process would keep
		// the TERM pending for ever, hence the CONT.
		_ = unix.Kill(g.pid, unix.SIGTERM)
		_ = unix.Kill(g.pid, unix.SIGCONT)
	} else if !at.Before(g.kill) {
		return // a second TERM can only shorten the first
	}
	g.kill, g.stopped = at, true
	g.deadline = time.After(grace)
}

func (g *governor) killLeader() {
	g.stopped = true
	_ = unix.Kill(g.pid, unix.SIGKILL) // by itself too: it may have gone over to another group
	_ = unix.Kill(-g.pid, unix.SIGKILL)
	if g.hopeless == nil {
		g.hopeless = time.After(sweepLimit)
	}
}

// listen ends the run of a worker that has said nothing for too long. It believes in silence at the second look only: when all of us were
// frozen together, the worker's words may be in the pipe, unread. What is late by then is not given any grace. When this process itself has
// stood still for so long that another worker may have the thread, whatever the worker says comes too late.
func (g *governor) listen() {
	now := sinceBoot()
	gap := now - g.looked
	g.looked = now
	if g.order.Silent > 0 && !g.orphaned && g.silence == 0 && gap > g.order.Silent+silentGrace && !over(g.pid) {
		g.silence = gap
		g.killLeader()
		return
	}
	silence := now - time.Duration(g.heard.Load())
	if g.order.Silent == 0 || g.orphaned || g.silence > 0 || silence < g.order.Silent {
		g.quiet = 0
		return
	}
	if g.quiet++; g.quiet < 2 || over(g.pid) {
		return
	}
	g.silence = silence
	g.term(max(0, g.order.Silent+min(g.order.Orphan, silentGrace)-silence))
}

// count ends a run that has too many processes, as a fork bomb has. They are counted every second, and at once when the machine has
// conspicuously more than before.
func (g *governor) count() {
	var info unix.Sysinfo_t
	if g.order.MaxProcesses == 0 || unix.Sysinfo(&info) != nil {
		return
	}
	more := int(int16(info.Procs - g.threads)) //nolint:gosec // the kernel counts with 16 bits, and so wraps around
	if g.processes == 0 && time.Since(g.counted) < time.Second && more < g.order.MaxProcesses/4 {
		return
	}
	all, threads := descendants(os.Getpid())
	g.threads, g.counted = info.Procs, time.Now()
	if threads > g.order.MaxProcesses {
		g.processes = max(g.processes, threads)
	}
	if g.processes > 0 { // also of those that were born meanwhile
		killRun(all)
		g.killLeader()
	}
}

// sinceBoot is a clock that does not stand still while the machine is suspended.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0 // there is such a clock since Linux 2.6.39
	}
	return time.Duration(now.Nano())
}
