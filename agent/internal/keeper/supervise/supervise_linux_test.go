package supervise

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/internal/await"
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

// spaced lists when heartbeats are sent that are so far apart, within a time.
func spaced(every, within time.Duration) (sent []time.Duration) {
	for at := every; at <= within; at += every {
		sent = append(sent, at)
	}
	return sent
}

// A keeper that stood still together with its worker ends the run, whatever the worker has written since: another
// may have the thread. One that did not get a processor for as long does not, nor one that stood still alone, for
// example because its memory was on the disk: then the worker's heartbeats are there, and say when they were sent.
func TestKeeperThawed(t *testing.T) {
	t.Parallel()
	const limit, ages = 2 * time.Second, 10 * time.Minute
	const most, beat = limit + SilenceGrace, limit / HeartbeatsPerLimit
	for name, c := range map[string]struct {
		away, starved time.Duration   // time without a look, and without a processor
		sent          []time.Duration // heartbeats, since the look before
		earlier       time.Duration   // starvation that was noticed at the look before
		ends          bool
	}{
		"as long as it may":                 {away: most},
		"for longer":                        {away: most + 1, ends: true},
		"for long, and both write again":    {away: ages, sent: []time.Duration{beat, ages - beat}, ends: true},
		"for long, after many heartbeats":   {away: ages, sent: spaced(beat, most), ends: true},
		"too long between two":              {away: 2 * most, sent: []time.Duration{1, most + 2, 2 * most}, ends: true},
		"not too long between two":          {away: 2 * most, sent: []time.Duration{1, most + 1, 2 * most}},
		"too long after one":                {away: 2 * most, sent: []time.Duration{most - 1}, ends: true},
		"not too long after one":            {away: 2 * most, sent: []time.Duration{most}},
		"alone":                             {away: 2 * most, sent: spaced(beat, 2*most)},
		"alone, for long":                   {away: ages, sent: spaced(beat, ages)},
		"alone, and the worker is slow":     {away: ages, sent: spaced(3*beat, ages)},
		"without a CPU":                     {away: ages, starved: ages},
		"without a CPU nearly all the time": {away: ages, starved: ages - most},
		"without a CPU not quite so long":   {away: ages, starved: ages - most - 1, ends: true},
		"without a CPU, as known before":    {away: ages, earlier: ages - most},
		"without a CPU, as partly known":    {away: ages, earlier: limit, starved: ages - most - limit},
		"without a CPU, as nearly known":    {away: ages, earlier: ages - most - 1, ends: true},
		"without a CPU, as the slow worker": {away: ages, starved: ages - 2*most, sent: spaced(limit, ages)},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		k := worker{limit: limit, stat: -1, control: int(r.Fd()), apart: ages}
		k.begin()
		start, waited, in := k.looked, k.waited, bufio.NewReader(r)
		if silence := k.look(start, waited+c.earlier); silence > 0 {
			t.Errorf("%s: ended before", name)
		}
		for _, at := range c.sent {
			if err := WriteLine(w, Command{Sent: start + at}); err != nil {
				t.Fatal(err)
			}
			_, _ = in.Peek(1) // out of the pipe, and not parsed
		}
		if err := k.read(in, nil); err != nil {
			t.Fatal(err)
		}
		silence := k.look(start+c.away, waited+c.earlier+c.starved)
		if ended := silence > most; ended != c.ends || !ended && silence > 0 {
			t.Errorf("%s: silent for %s", name, silence)
		}
		_, _ = r.Close(), w.Close()
	}
}

// A worker that is only slow does not lose its run, and one that does nothing does. It is not the number of missing
// heartbeats that tells them apart.
func TestSilentWorker(t *testing.T) {
	t.Parallel()
	_, busy := neighbour(t, "echo; while :; do :; done")
	stopping, stopped := neighbour(t, "echo; while :; do :; done")
	if err := stopping.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(stopping.Process.Pid, nil, unix.WUNTRACED, nil); err != nil { // until it has stopped
		t.Fatal(err)
	}
	_, resting := neighbour(t, "echo; exec sleep 600")
	const limit = WorkerTimeout + checkInterval
	for name, c := range map[string]struct {
		stat         int
		silent, away time.Duration // since its last line; and of it, the keeper's own absence
		ends         bool
	}{
		"works":                           {stat: busy, silent: starvedLimits*WorkerTimeout - 1},
		"works, but not for its runs":     {stat: busy, silent: starvedLimits * WorkerTimeout, ends: true},
		"is stopped":                      {stat: stopped, silent: limit, ends: true},
		"was just stopped":                {stat: stopped, silent: limit - 1},
		"is stopped, and the keeper slow": {stat: stopped, silent: limit, away: limit, ends: true},
		"does nothing, as if frozen":      {stat: resting, silent: limit, ends: true},
		"has not been listened to":        {stat: resting, silent: 2*limit - 1, away: limit},
		"does nothing, seen by a slow one": {
			stat: resting, silent: 2 * limit, away: limit, ends: true,
		},
		"has written since":      {stat: resting, silent: 0, away: limit},
		"cannot be seen":         {stat: -1, silent: limit, ends: true},
		"could just not be seen": {stat: -1, silent: limit - 1},
	} {
		silence := silenceOf(c.stat, c.silent, c.away)
		for try := 0; c.ends && silence == 0 && try < 100; try++ { // the neighbour that rests may still be starting
			<-time.After(20 * time.Millisecond)
			silence = silenceOf(c.stat, c.silent, c.away)
		}
		if ended := silence >= limit; ended != c.ends || !ended && silence > 0 {
			t.Errorf("%s: silent for %s", name, silence)
		}
	}
}

// silenceOf returns the silence that ends the run of a worker that has sent nothing for so long, during a part of which
// its keeper was away.
func silenceOf(stat int, silent, away time.Duration) time.Duration {
	w := worker{limit: WorkerTimeout, stat: stat, control: -1}
	w.begin()
	w.away = time.Hour // before its last line
	w.look(w.looked, w.waited)
	w.line, w.worked, w.away = w.line-silent, w.worked-silent, w.away+away
	return w.look(w.looked, w.waited)
}

// What a worker did before its latest heartbeat is no sign that it works since.
func TestEarlierWork(t *testing.T) {
	t.Parallel()
	r, control, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer control.Close()
	w := worker{limit: WorkerTimeout, stat: -1, control: int(r.Fd()), doubt: true, cpu: -1}
	w.begin()
	if err := WriteLine(control, Command{Sent: w.looked}); err != nil {
		t.Fatal(err)
	}
	if err := w.read(bufio.NewReader(r), nil); err != nil {
		t.Fatal(err)
	}
	w.looked += 2 * WorkerTimeout // as if it had looked all the time
	if silence := w.look(w.looked, w.waited); silence != 2*WorkerTimeout {
		t.Errorf("silent for %s", silence)
	}
}

// The grace of a run whose worker is silent ends SilenceGrace after the limit, and there is none if that is over.
func TestGraceAfterSilence(t *testing.T) {
	t.Parallel()
	for silence, some := range map[time.Duration]bool{
		WorkerTimeout: true, WorkerTimeout + SilenceGrace: false, time.Hour: false,
	} {
		cmd, _ := neighbour(t, "echo; exec sleep 600")
		s := supervisor{pid: cmd.Process.Pid, order: Order{WorkerTimeout: WorkerTimeout, OrphanGrace: OrphanGrace}}
		before := time.Now()
		s.endSilent(silence)
		if s.silence != silence || !s.stopped || s.killAt.Before(before) ||
			s.killAt.After(time.Now().Add(SilenceGrace)) || some && s.killAt.Before(before.Add(SilenceGrace)) ||
			!some && s.killAt.After(time.Now()) {
			t.Errorf("after %s: stopped %t, to be killed %s later", silence, s.stopped, s.killAt.Sub(before))
		}
	}
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

// The thread that looks at the worker is the one whose waiting for a processor is measured, and nobody has to wake it:
// it sleeps in the kernel until the worker writes, and no other thread's waiting makes it late.
func TestOwnThreadIsMeasured(t *testing.T) {
	t.Parallel()
	r, control, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx := await.Context(t)
	w := worker{limit: 1, stat: -1, control: int(r.Fd())}
	commands, silences, looked := make(chan Command), make(chan time.Duration, 1), make(chan time.Time)
	go w.watch(bufio.NewReader(r), commands, silences, looked)
	for range 3 { // it waits for nobody who should hear that the worker is silent
		select {
		case <-looked:
		case <-ctx.Done():
			t.Fatal("it looks no more")
		}
	}
	thread, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", w.own))
	if err != nil {
		t.Fatal(err)
	}
	for {
		call, err := os.ReadFile(filepath.Join(filepath.Dir(thread), "syscall"))
		if err != nil {
			t.Fatal(err)
		}
		number, _, _ := strings.Cut(strings.TrimSpace(string(call)), " ")
		if number != "running" && number != strconv.Itoa(unix.SYS_FUTEX) {
			break
		}
		select {
		case <-time.After(time.Millisecond): // it reports no progress
		case <-ctx.Done():
			t.Fatalf("it sleeps until another thread wakes it: %s", call)
		}
	}
	if err := WriteLine(control, Command{Grace: time.Second}); err != nil {
		t.Fatal(err)
	}
	if c := <-commands; c.Grace != time.Second {
		t.Errorf("command %v", c)
	}
	_ = control.Close()
	if c, ok := <-commands; ok {
		t.Errorf("after the end: %v", c)
	}
}
