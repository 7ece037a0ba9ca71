package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// neighbour starts a shell script and opens its stat.
func neighbour(t *testing.T, script string) (cmd *exec.Cmd, stat int) {
	t.Helper()
	cmd = exec.Command("/bin/sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has begun
		t.Fatal(err)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return cmd, int(f.Fd())
}

// unread returns the descriptor of a pipe in which so many heartbeats wait.
func unread(t *testing.T, heartbeats int) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	for range heartbeats {
		if err := WriteLine(w, Command{}); err != nil {
			t.Fatal(err)
		}
	}
	return int(r.Fd())
}

// A keeper that stood still together with its worker ends the run, whatever the worker has written since: another
// may have the thread. One that did not get a processor for as long does not, nor one that stood still alone, for
// example because its memory was on the disk: then the worker's heartbeats are there.
func TestKeeperThawed(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	const long = limit + SilenceGrace + time.Second
	beats := int(long / (limit / HeartbeatsPerLimit))
	for name, c := range map[string]struct {
		away, starved time.Duration
		unread, read  int // heartbeats at the first look, and those that were read by the second one
		earlier       int64
		ends          bool
	}{
		"for long":                        {away: long, ends: true},
		"for long, and both write again":  {away: long, unread: 2, read: 1, ends: true},
		"for long, after many heartbeats": {away: long, earlier: 1000, ends: true},
		"alone at first":                  {away: 5 * long, unread: 4 * beats, ends: true},
		"alone":                           {away: long, unread: beats},
		"alone, and has read":             {away: long, read: beats},
		"alone, and reads":                {away: long, unread: beats - 3, read: 3},
		"for a moment":                    {away: time.Second},
		"without a CPU":                   {away: time.Hour, starved: time.Hour},
	} {
		cmd, _ := neighbour(t, "echo; exec sleep 600")
		s := &supervisor{pid: cmd.Process.Pid, worker: worker{limit: limit, stat: -1, control: unread(t, c.unread)}}
		s.worker.begin()
		s.worker.looked -= c.away
		s.worker.waited -= c.starved
		s.worker.lines.Store(c.earlier)
		s.worker.sent = c.earlier
		s.checkWorker()
		if s.silence > 0 {
			t.Errorf("%s: ended at once", name)
		}
		s.worker.lines.Add(int64(c.read))
		s.worker.looked = sinceBoot() // however late this goroutine is
		s.checkWorker()
		if ended := s.silence > 0 && s.stopped; ended != c.ends {
			t.Errorf("%s: silent for %s, stopped %t", name, s.silence, s.stopped)
		}
	}
}

// A worker that is only slow does not lose its run, and one that does nothing does. It is not the number of missing
// heartbeats that tells them apart.
func TestSilentWorker(t *testing.T) {
	t.Parallel()
	busy, busyStat := neighbour(t, "echo; while :; do :; done")
	stopped, stoppedStat := neighbour(t, "echo; while :; do :; done")
	if err := stopped.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(stopped.Process.Pid, nil, unix.WUNTRACED, nil); err != nil { // until it has stopped
		t.Fatal(err)
	}
	_, restingStat := neighbour(t, "echo; exec sleep 600")
	for name, c := range map[string]struct {
		stat         int
		silent, away time.Duration // since its last line; and of it, the keeper's own absence
		unread       int           // heartbeats in the pipe
		ends         bool
	}{
		"works":                           {stat: busyStat, silent: 20 * time.Second},
		"works, but not for its runs":     {stat: busyStat, silent: time.Hour, ends: true},
		"is stopped":                      {stat: stoppedStat, silent: 7 * time.Second, ends: true},
		"was just stopped":                {stat: stoppedStat, silent: 3 * time.Second},
		"is stopped, and the keeper slow": {stat: stoppedStat, silent: 7 * time.Second, away: 5 * time.Second, ends: true},
		"does nothing, as if frozen":      {stat: restingStat, silent: 7 * time.Second, ends: true},
		"has not been listened to":        {stat: restingStat, silent: 7 * time.Second, away: 5 * time.Second},
		"has not been read":               {stat: restingStat, silent: 7 * time.Second, unread: 1},
		"cannot be seen":                  {stat: -1, silent: 7 * time.Second, ends: true},
	} {
		control := unread(t, c.unread)
		ended := endedAfter(busy.Process.Pid, c.stat, control, c.silent, c.away)
		for try := 0; c.ends && !ended && try < 100; try++ { // the neighbour that rests may still be starting
			<-time.After(20 * time.Millisecond)
			ended = endedAfter(busy.Process.Pid, c.stat, control, c.silent, c.away)
		}
		if ended != c.ends {
			t.Errorf("%s: ended %t", name, ended)
		}
	}
}

// endedAfter reports whether the run of a worker is ended that has sent nothing for so long, during a part of which its
// keeper was away.
func endedAfter(leader, stat, control int, silent, away time.Duration) bool {
	s := &supervisor{pid: leader, worker: worker{limit: 6 * time.Second, stat: stat, control: control}}
	s.stopped, s.killAt = true, time.Now() // nothing is to be signalled
	s.worker.begin()
	s.worker.heard.Add(-int64(silent))
	s.worker.look() // notes the line
	s.worker.away = away
	for range 3 {
		s.worker.looked = sinceBoot() // however late this goroutine is
		s.checkWorker()
	}
	return s.silence > 0
}

// A worker's stat can be read from its descriptor: who uses a processor, and what stops.
func TestStateOf(t *testing.T) {
	t.Parallel()
	_, stat := neighbour(t, "echo; while :; do :; done")
	_, before := stateOf(stat)
	for cpu := before; cpu == before; {
		select {
		case <-time.After(20 * time.Millisecond): // it reports no progress
		case <-t.Context().Done():
			t.Fatal("it uses no processor")
		}
		var state string
		if state, cpu = stateOf(stat); state != "R" {
			t.Fatalf("state %q", state)
		}
	}
	if state, cpu := stateOf(-1); state != "" || cpu != 0 {
		t.Errorf("of no process: %q, %d", state, cpu)
	}
}

// Only the thread that looks at the worker tells whether it had a processor: the process's first thread may be another
// one, which never wants one.
func TestOwnThreadIsMeasured(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var w worker
	w.begin()
	defer unix.Close(w.own)
	got, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", w.own))
	if want := fmt.Sprintf("/proc/%d/task/%d/schedstat", os.Getpid(), unix.Gettid()); err != nil || got != want {
		t.Errorf("measures %q, want %q (%v)", got, want, err)
	}
}
