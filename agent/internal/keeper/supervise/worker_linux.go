package supervise

import (
	"bufio"
	"bytes"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// worker is what a keeper knows about the process that it works for.
//
// A heartbeat proves that the worker works. A missing one does not prove the contrary: on a machine with more work than
// processors, neither the worker nor this process gets its turn in time. So a worker without heartbeats counts as
// working while its first thread waits for a processor, whose state is that of the process, or any of its threads uses
// one. The time in which this process did not look is no silence: the lines that it reads then say when they were sent.
type worker struct {
	limit   time.Duration // of silence; 0: any
	stat    int           // descriptor of the worker's /proc/<pid>/stat, which is readable in any sandbox
	own     int           // descriptor of the schedstat of the thread that looks at the worker
	control int           // descriptor that the worker's lines come from

	looked time.Duration // time of the latest look, by SinceBoot
	waited time.Duration // this thread's time without a processor up to then
	line   time.Duration // when the worker sent its latest line
	worked time.Duration // when the worker was last known to work
	apart  time.Duration // longest time between signs of its work since the latest look
	away   time.Duration // time since worked in which this process did not look
	doubt  bool          // heartbeats are missing, and cpu is known
	cpu    int64         // processor time of the worker, in clock ticks
}

// starvedLimits is how many limits of silence a worker may use processors without a heartbeat. Its claims have expired
// long before.
const starvedLimits = 10

// watch passes on the worker's commands until the control pipe ends, and once how long the worker has been silent if
// that ends its run. After each look a check of the run is due. It stays on its thread and sleeps there: a timer of Go
// would need another thread, and how long that one waits for a processor is not measured.
func (w *worker) watch(in *bufio.Reader, commands chan<- Command, silences chan<- time.Duration, due chan<- time.Time) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(commands)
	for w.begin(); ; {
		readable(w.control, checkInterval)
		now, waited := SinceBoot(), waitedForCPU(w.own)
		if w.read(in, commands) != nil {
			return
		}
		if silence := w.look(now, waited); silence > 0 {
			silences <- silence
			w.limit = 0
		}
		select {
		case due <- time.Time{}:
		default:
		}
	}
}

// read reads what the worker has sent by now. It errs if the worker is gone.
func (w *worker) read(in *bufio.Reader, commands chan<- Command) error {
	for in.Buffered() > 0 || readable(w.control, 0) {
		var c Command
		if err := ReadLine(in, &c); err != nil {
			return err
		}
		w.apart = max(w.apart, c.Sent-w.worked)
		w.line, w.worked, w.doubt = c.Sent, c.Sent, false
		if c.Grace > 0 {
			commands <- c
		}
	}
	return nil
}

// begin notes that the worker works now. Its caller stays on this thread, and looks at the worker from there.
func (w *worker) begin() {
	w.own, _ = unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0) // -1: not measured
	w.looked, w.waited = SinceBoot(), waitedForCPU(w.own)
	w.line, w.worked = w.looked, w.looked
}

// look returns how long the worker has been silent if that ends its run, and 0 otherwise. All that the worker had sent
// at the time now was read.
func (w *worker) look(now, waited time.Duration) (silence time.Duration) {
	gap, apart := now-w.looked, max(w.apart, now-w.worked)
	starved := min(waited-w.waited, gap) // the rest is part of the next gap
	w.looked, w.waited, w.apart = now, w.waited+starved, 0
	if w.limit == 0 {
		return 0
	}
	// This process was frozen or suspended, and so was the worker, unless it has sent lines meanwhile. Another worker
	// may have its task by now.
	if frozen := min(gap-starved, apart); frozen > w.limit+SilenceGrace {
		return frozen
	}
	if gap > 2*checkInterval {
		w.away += gap - checkInterval
	}
	w.away = min(w.away, max(0, now-w.worked))
	if silence = w.silence(now); silence < w.limit+checkInterval { // it may just get its first turn
		return 0
	}
	return silence
}

// silence returns how long the worker has shown no sign of life.
func (w *worker) silence(now time.Duration) time.Duration {
	if now-w.line < 2*w.limit/HeartbeatsPerLimit {
		return 0
	}
	state, cpu := stateOf(w.stat)
	works := state == "R" || w.doubt && cpu > w.cpu
	w.doubt, w.cpu = true, cpu
	if works && now-w.line < starvedLimits*w.limit {
		w.worked = now
	}
	silence := now - w.worked
	// A worker that is stopped for certain is ended however late this process looks: term leaves it no grace then. Only
	// if this process has no processor at the time of the earliest takeover does the run overlap with the next one, and
	// the fence prevents its effects.
	if state == "T" || state == "t" {
		return silence
	}
	return silence - w.away
}

// readable waits on this thread until there is something to read, or the end, and reports whether it came in time.
func readable(fd int, limit time.Duration) bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds())) //nolint:gosec // small
	return n > 0
}

// SinceBoot is a clock that goes on while the machine is suspended. Worker and keeper have the same.
func SinceBoot() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0 // the clock exists since Linux 2.6.39
	}
	return time.Duration(now.Nano())
}

// stateOf returns the state of a process and its processor time from the descriptor of its stat. They are empty if that
// cannot be read.
func stateOf(stat int) (state string, cpu int64) {
	var buffer [1 << 10]byte
	n, err := unix.Pread(stat, buffer[:], 0)
	if err != nil {
		return "", 0
	}
	fields, err := statFields(buffer[:n])
	if err != nil {
		return "", 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return fields[0], user + system
}

// waitedForCPU returns how long a thread was ready to run and did not, from the descriptor of its schedstat. One that
// is stopped or frozen does not wait in this sense. It is 0 on a kernel that does not measure it.
func waitedForCPU(schedstat int) time.Duration {
	var buffer [128]byte
	n, err := unix.Pread(schedstat, buffer[:], 0)
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(buffer[:n], []byte(" "))
	waited, _, _ := bytes.Cut(rest, []byte(" "))
	ns, _ := strconv.ParseInt(string(waited), 10, 64)
	return time.Duration(ns)
}
