package supervise

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// worker is what a keeper knows about the process that it works for.
//
// A heartbeat proves that the worker works. A missing one does not prove the contrary: on a machine with more work than
// processors, neither the worker nor this process gets its turn in time. So a worker without heartbeats counts as
// working while its first thread waits for a processor, whose state is that of the process, or any of its threads uses
// one. The time in which this process waited for one is no silence, and neither are lines that nobody has read yet.
type worker struct {
	limit   time.Duration // of silence; 0: any
	stat    int           // descriptor of the worker's /proc/<pid>/stat, which is readable in any sandbox
	own     int           // descriptor of the schedstat of the thread that looks at the worker
	control int           // descriptor that the worker's lines come from
	heard   atomic.Int64  // time of the worker's latest line, by sinceBoot
	lines   atomic.Int64  // number of its lines that were read

	looked time.Duration // time of the latest look, by sinceBoot
	waited time.Duration // this thread's time without a processor up to then
	sent   int64         // lines of the worker up to then, read or not
	absent time.Duration // how long this process had not looked by then, if that was long, and it had a processor
	before int64         // sent, before that
	line   time.Duration // heard, at that time
	worked time.Duration // when the worker was last known to work
	away   time.Duration // time since then in which this process could not look
	doubt  bool          // heartbeats are missing, and cpu is known
	cpu    int64         // processor time of the worker, in clock ticks
	silent int           // looks in a row that found it silent
}

// starvedLimits is how many limits of silence a worker may use processors without a heartbeat. Its claims have expired
// long before.
const starvedLimits = 10

// begin notes that the worker works now. Its caller stays on this thread, and looks at the worker from there: without
// that, the process's first thread may be another one, which never waits.
func (w *worker) begin() {
	w.own, _ = unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0) // -1: not measured
	w.looked, w.waited = sinceBoot(), waitedForCPU(w.own)
	w.heard.Store(int64(w.looked))
}

// look returns how long the worker has been silent if that ends its run, and 0 otherwise. late says that another worker
// may have its task by now.
//
// The second look that finds it silent decides: when all processes were frozen together, the worker's lines may be in
// the pipe, unread.
func (w *worker) look() (silence time.Duration, late bool) {
	now, waited, unread := sinceBoot(), waitedForCPU(w.own), unreadIn(w.control)
	sent := w.lines.Load() + unread/heartbeatSize
	gap, before := now-w.looked, w.sent
	starved := waited - w.waited
	w.looked, w.waited, w.sent = now, waited, sent
	if w.limit == 0 {
		return 0, false
	}
	// This process was frozen or suspended, and so was the worker, unless it has sent nearly all heartbeats meanwhile.
	absent := w.absent
	w.absent = 0
	if absent > 0 && absent+gap-time.Duration(sent-w.before)*(w.limit/HeartbeatsPerLimit) > w.limit {
		return absent, true
	}
	if gap-starved > w.limit+SilenceGrace {
		w.absent, w.before = gap, before
	}
	if gap > 2*checkInterval {
		w.away += gap - checkInterval
	}
	if unread > 0 {
		w.heard.Store(int64(now))
	}
	if silence = w.silence(now); silence < w.limit {
		w.silent = 0
		return 0, false
	}
	if w.silent++; w.silent < 2 {
		return 0, false
	}
	return silence, false
}

// heartbeatSize is the size of a heartbeat, which is nearly all that a worker sends.
const heartbeatSize = int64(len("{}\n"))

// unreadIn returns how many bytes wait in a pipe or a socket.
func unreadIn(fd int) int64 {
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ) // FIONREAD
	if err != nil {
		return 0
	}
	return int64(n)
}

// silence returns how long the worker has shown no sign of life.
func (w *worker) silence(now time.Duration) time.Duration {
	if line := time.Duration(w.heard.Load()); line != w.line {
		w.line, w.worked, w.away, w.doubt = line, line, 0, false
	}
	if now-w.line < 2*w.limit/HeartbeatsPerLimit {
		return 0
	}
	state, cpu := stateOf(w.stat)
	works := state == "R" || w.doubt && cpu > w.cpu
	w.doubt, w.cpu = true, cpu
	if works && now-w.line < starvedLimits*w.limit {
		w.worked, w.away = now, 0
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
