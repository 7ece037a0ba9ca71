package supervise

import (
	"bufio"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// checkInterval is how often a supervisor checks the worker's silence and what the run uses.
const checkInterval = 100 * time.Millisecond

// collectInterval is how often it returns unused memory. Go lets even the smallest heap grow by 1 MB first.
const collectInterval = 30 * time.Second

// supervisor supervises the leader of a run until it is dead.
type supervisor struct {
	pid    int
	order  Order
	worker worker

	segments bool // the run has its own System V segments

	killAt   time.Time        // when to kill the leader; zero: not at all
	deadline <-chan time.Time // fires then
	giveUp   <-chan time.Time // fires when a leader that was killed has not died
	threads  uint16           // of the whole machine, when the run's were counted
	free     int64            // bytes of the machine's memory, at that time
	counted  time.Time        // time of that count

	orphaned  bool          // the worker died
	stopped   bool          // the leader was stopped, for whatever reason
	silence   time.Duration // the worker's, if it ended the run
	processes int           // number of processes and threads, if it ended the run
	memory    int64         // bytes, if it ended the run
	peak      int64         // the most bytes seen
}

// supervise obeys the control pipe until the leader is dead (and still a zombie, so that its process group cannot be
// reused), and reaps orphans of its tools as they die. It gives up a leader that does not die within KillTimeout of
// KILL, in uninterruptible sleep.
func (s *supervisor) supervise(in *bufio.Reader) {
	commands, silences, looked := make(chan Command), make(chan time.Duration, 1), make(chan time.Time, 1)
	go s.worker.watch(in, commands, silences, looked) // until the process ends
	due := (<-chan time.Time)(looked)
	childDied := make(chan os.Signal, 1)
	signal.Notify(childDied, syscall.SIGCHLD)
	defer signal.Stop(childDied)
	collect := time.NewTicker(collectInterval)
	defer collect.Stop()
	for !Exited(s.pid) { // SIGCHLD wakes it
		select {
		case <-s.giveUp:
			return
		case <-childDied:
			if !Exited(s.pid) {
				reapOrphans(s.pid)
			}
		case <-s.deadline:
			s.killLeader()
		case <-due:
			s.checkUse()
		case <-collect.C:
			debug.FreeOSMemory()
		case c, ok := <-commands:
			if ok {
				s.term(c.Grace)
				continue
			}
			commands, due, s.orphaned = nil, time.Tick(checkInterval), true
			s.term(s.order.OrphanGrace)
		case silence := <-silences:
			s.endSilent(silence)
		}
	}
}

// term asks the leader to end, and has it killed after grace.
func (s *supervisor) term(grace time.Duration) {
	if Exited(s.pid) {
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
		s.giveUp = time.After(KillTimeout)
	}
}

// endSilent ends the run of a worker that was silent for too long. The grace is shortened by the time the worker is
// overdue. If another worker may have the task by now, there is none: whatever this worker says comes too late.
func (s *supervisor) endSilent(silence time.Duration) {
	if s.orphaned || Exited(s.pid) {
		return
	}
	s.silence = silence
	s.term(max(0, s.order.WorkerTimeout+min(s.order.OrphanGrace, SilenceGrace)-silence))
}

// checkUse ends a run that has too many processes, as a fork bomb has, or too much memory. They are counted every
// second, and at once when the machine has many more processes, or much less free memory, than before.
func (s *supervisor) checkUse() {
	var info unix.Sysinfo_t
	if s.order.MaxProcesses == 0 && s.order.MaxMemory == 0 || unix.Sysinfo(&info) != nil {
		return
	}
	more := int(int16(info.Procs - s.threads))             //nolint:gosec // 16 bits in the kernel, so it wraps around
	free := int64(info.Freeram) * int64(max(1, info.Unit)) //nolint:gosec // far below 2^63
	much := s.order.MaxProcesses > 0 && more >= s.order.MaxProcesses/4 ||
		s.order.MaxMemory > 0 && s.free-free >= s.order.MaxMemory/8
	if s.processes == 0 && s.memory == 0 && time.Since(s.counted) < time.Second && !much {
		return
	}
	all, threads := Descendants(os.Getpid())
	s.threads, s.free, s.counted = info.Procs, free, time.Now()
	if s.order.MaxProcesses > 0 && threads > s.order.MaxProcesses {
		s.processes = max(s.processes, threads)
	}
	used := memoryOf(all, s.order.MaxMemory)
	if s.segments {
		used += detachedSegments()
	}
	s.peak = max(s.peak, used)
	if s.order.MaxMemory > 0 && used > s.order.MaxMemory {
		s.memory = max(s.memory, used)
	}
	if s.processes > 0 || s.memory > 0 { // again at each check, for processes that were started meanwhile
		killRun(all)
		s.killLeader()
	}
}
