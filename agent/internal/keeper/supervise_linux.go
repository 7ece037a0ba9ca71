package keeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// checkInterval is how often a supervisor checks the worker's silence and the number of processes.
const checkInterval = 100 * time.Millisecond

// supervisor supervises the leader of a run until it is dead.
type supervisor struct {
	pid   int
	order Order
	heard atomic.Int64 // time of the worker's last line, by sinceBoot

	killAt      time.Time        // when to kill the leader; zero: not at all
	deadline    <-chan time.Time // fires then
	giveUp      <-chan time.Time // fires when a leader that was killed has not died
	silentLooks int              // checks in a row that found the worker silent
	checked     time.Duration    // time of the latest checkWorker, by sinceBoot
	threads     uint16           // of the whole machine, when the run's were counted
	counted     time.Time        // time of that count

	orphaned  bool          // the worker died
	stopped   bool          // the leader was stopped, for whatever reason
	silence   time.Duration // the worker's, if it ended the run
	processes int           // number of processes and threads, if it ended the run
}

// supervise obeys the control pipe until the leader is dead (and still a zombie, so that its process group cannot be
// reused), and reaps orphans of its tools as they die. It gives up a leader that does not die within killTimeout of
// KILL, in uninterruptible sleep.
func (s *supervisor) supervise(in *bufio.Reader) {
	s.checked = sinceBoot()
	s.heard.Store(int64(s.checked))
	dead, commands := make(chan struct{}), make(chan command)
	go func() {
		defer close(dead)
		for {
			err := unix.Waitid(unix.P_PID, s.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	go func() {
		defer close(commands)
		s.readCommands(in, commands, dead)
	}()
	childDied := make(chan os.Signal, 1)
	signal.Notify(childDied, syscall.SIGCHLD)
	defer signal.Stop(childDied)
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	for {
		select {
		case <-dead:
			return
		case <-s.giveUp:
			return
		case <-childDied:
			reapOrphans(s.pid)
		case <-s.deadline:
			s.killLeader()
		case <-check.C:
			s.checkWorker()
			s.checkProcesses()
		case c, ok := <-commands:
			if ok {
				s.term(c.Grace)
				continue
			}
			commands, s.orphaned = nil, true
			s.term(s.order.OrphanGrace)
		}
	}
}

// readCommands reads the control pipe until it ends.
func (s *supervisor) readCommands(in *bufio.Reader, commands chan<- command, dead <-chan struct{}) {
	for {
		var c command
		if readLine(in, &c) != nil {
			return
		}
		s.heard.Store(int64(sinceBoot()))
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
func (s *supervisor) term(grace time.Duration) {
	if exited(s.pid) {
		return // by itself, just now
	}
	at := time.Now().Add(grace)
	if !s.stopped {
		// Only to the leader, which can end its tools in an orderly way. A stopped process would keep the TERM pending,
		// hence the CONT.
		_ = unix.Kill(s.pid, unix.SIGTERM)
		_ = unix.Kill(s.pid, unix.SIGCONT)
	} else if !at.Before(s.killAt) {
		return // a second TERM can only shorten the first
	}
	s.killAt, s.stopped = at, true
	s.deadline = time.After(grace)
}

func (s *supervisor) killLeader() {
	s.stopped = true
	_ = unix.Kill(s.pid, unix.SIGKILL) // by its ID too: it may have moved to another group
	_ = unix.Kill(-s.pid, unix.SIGKILL)
	if s.giveUp == nil {
		s.giveUp = time.After(killTimeout)
	}
}

// checkWorker ends the run of a worker that was silent for too long. It acts at the second check that finds it silent:
// when all processes were frozen together, the worker's lines may be in the pipe, unread. The grace is shortened by the
// time the worker is overdue. If this process itself was suspended for so long that another worker may have the thread,
// whatever the worker says comes too late.
func (s *supervisor) checkWorker() {
	now, limit := sinceBoot(), s.order.WorkerTimeout
	gap := now - s.checked
	s.checked = now
	if limit == 0 || s.orphaned || s.silence > 0 {
		return
	}
	if gap > limit+silenceGrace && !exited(s.pid) {
		s.silence = gap
		s.killLeader()
		return
	}
	silence := now - time.Duration(s.heard.Load())
	if silence < limit {
		s.silentLooks = 0
		return
	}
	if s.silentLooks++; s.silentLooks < 2 || exited(s.pid) {
		return
	}
	s.silence = silence
	s.term(max(0, limit+min(s.order.OrphanGrace, silenceGrace)-silence))
}

// checkProcesses ends a run that has too many processes, as a fork bomb has. They are counted every second, and at once
// when the machine has many more than before.
func (s *supervisor) checkProcesses() {
	var info unix.Sysinfo_t
	if s.order.MaxProcesses == 0 || unix.Sysinfo(&info) != nil {
		return
	}
	more := int(int16(info.Procs - s.threads)) //nolint:gosec // the kernel counts with 16 bits, and so wraps around
	if s.processes == 0 && time.Since(s.counted) < time.Second && more < s.order.MaxProcesses/4 {
		return
	}
	all, threads := descendants(os.Getpid())
	s.threads, s.counted = info.Procs, time.Now()
	if threads > s.order.MaxProcesses {
		s.processes = max(s.processes, threads)
	}
	if s.processes > 0 { // again at each check, for processes that were started meanwhile
		killRun(all)
		s.killLeader()
	}
}

// sinceBoot is a clock that goes on while the machine is suspended.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0 // the clock exists since Linux 2.6.39
	}
	return time.Duration(now.Nano())
}

// SweepRun kills every process that has lost its keeper or carries the run's marker, and returns how many it found. It
// is for a keeper that was itself killed: what the tools had started is then adopted by this process, or by a reaper in
// between, and keeps the environment it inherited.
func SweepRun(run string) int {
	adopted := killAdopted()
	killed := map[int]bool{}
	for range 100 { // a fork can slip through one scan, so scan until nothing is found
		found := Marked(run)
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
			killed[pid] = true
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // they are not our children: nothing reports their death
	}
	return adopted + len(killed)
}

// Marked lists the live processes that carry a run's marker. Processes of other users, and those that have made
// themselves unreadable, are not seen.
func Marked(run string) []int {
	return withValue(RunVariable, func(id string) bool { return id == run })
}

// WorkerMark identifies this process for SweepDeadWorkers: its boot, its process namespace, its process ID there and
// its start time. The process ID by itself is reused. The mark is empty if /proc is incomplete, and then nothing is
// swept.
func WorkerMark() string {
	namespace, ok := pidNamespace()
	start, err := startTime(os.Getpid())
	if !ok || err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", namespace, os.Getpid(), start)
}

// pidNamespace names this boot of the machine and this process namespace. A process ID is valid only within both.
func pidNamespace() (name string, ok bool) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", false
	}
	namespace, err := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	if err != nil {
		return "", false
	}
	return strings.TrimSpace(string(boot)) + "/" + strings.Trim(namespace, "pid:[]"), true
}

// startTime returns when a process started, in clock ticks since boot; empty if it is dead and not yet reaped.
func startTime(pid int) (string, error) {
	state, start, err := processState(pid)
	if state == "Z" || state == "X" {
		return "", nil
	}
	return start, err
}

// isDead reports whether a mark belongs to a process of this namespace that is certainly dead.
func isDead(mark, namespace string) bool {
	rest, ours := strings.CutPrefix(mark, namespace+"/")
	number, start, _ := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(number)
	if !ours || err != nil || pid <= 0 || start == "" {
		return false
	}
	// /proc is not enough: mounted with hidepid, it hides processes that made themselves private, as workers do.
	if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
		return true
	}
	now, err := startTime(pid)
	return err == nil && now != start
}

// SweepDeadWorkers kills every process that carries the mark of a dead worker, until none is left, and returns how many
// it found.
func SweepDeadWorkers(ctx context.Context) (int, error) {
	namespace, ok := pidNamespace()
	if !ok {
		return 0, nil
	}
	killed := map[int]bool{}
	for stop := time.Now().Add(killTimeout); ; {
		found := withValue(WorkerVariable, func(mark string) bool { return isDead(mark, namespace) })
		if len(found) == 0 {
			return len(killed), nil
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
			killed[pid] = true
		}
		if err := ctx.Err(); err != nil || time.Now().After(stop) {
			return len(killed), errors.Join(fmt.Errorf("sweep: %d processes of dead workers do not die", len(found)), err)
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // they are not our children: nothing reports their death
	}
}
