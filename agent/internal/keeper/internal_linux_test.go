package keeper

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
	"github.com/errand-fleet/errand/internal/await"
)

// The worker's death should shorten a stop that is under way, because the thread must not look free while its CLI
// lives.
func TestWorkerDiesDuringAStop(t *testing.T) {
	t.Parallel()
	c, err := new(Program).Start(t.Context(), Order{
		Path: "/bin/bash", Args: []string{"bash", "-c", "trap '' TERM; echo up; while :; do read -t 100 <> <(:); done"},
		Dir: "/", OrphanGrace: 50 * time.Millisecond,
	}, Sandbox{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c.Stdout, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	c.Term(time.Hour)
	_ = c.control.Close()
	<-c.done
	if c.Exit.Signal != "SIGKILL" {
		t.Errorf("exit = %+v", c.Exit)
	}
}

// A keeper starts whatever the numbers of its descriptors are. The Go runtime moves its pipe for errors, in the child,
// to the number above the highest one that it passes on; that must not be the one of the program.
func TestDescriptorsOfAStart(t *testing.T) {
	t.Parallel()
	var p Program
	own, unavailable := p.open(t.Context())
	if unavailable != nil {
		t.Fatal(unavailable)
	}
	at := func(f *os.File, least int) *os.File {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, least)
		if err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(fd), f.Name())
	}
	c, err := openChannels(Order{})
	if err != nil {
		t.Fatal(err)
	}
	high := at(c.stderr.keeper, 700) // other tests do not get so far
	_ = c.stderr.keeper.Close()
	c.stderr.keeper = high
	program := at(own.file, int(high.Fd())+1)
	defer program.Close()
	if program.Fd() != high.Fd()+1 {
		t.Fatalf("descriptors %d and %d", high.Fd(), program.Fd())
	}
	cmd, err := spawn(program, c, Order{}, Sandbox{}, nil)
	c.closeKeeperEnds()
	c.closeWorkerEnds() // so the keeper ends
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it gets no order, and says so
}

// A machine that is too busy to start errand-keeper in time has not the wrong one.
func TestSlowProgram(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	p := Program{Path: filepath.Join(t.TempDir(), "slow")}
	p.probe.Limit = 100 * time.Millisecond
	syscall.ForkLock.RLock() // a child forked meanwhile would hold the file open for writing
	err = os.WriteFile(p.Path, program, 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	name, unavailable := p.Name(t.Context())
	if unavailable == nil || name != "" {
		t.Fatalf("%q is available", name)
	}
	if u := *unavailable; !u.Busy || !strings.Contains(u.Problem, "did not print its version in time") ||
		strings.Contains(u.Remedy, "install") {
		t.Errorf("%+v", u)
	}
}

// fullRun returns a run that has no memory left, with what its keeper is sent.
func fullRun(t *testing.T) (p *Process, commands *os.File) {
	t.Helper()
	g := &group{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(g.dir, "memory.events"), []byte("oom 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commands, control, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll([]*os.File{commands, control}) })
	return &Process{group: g, control: control, done: make(chan struct{})}, commands
}

// A keeper that a tool has stopped is killed, even if its run has no memory left and should be ended by the keeper.
func TestStoppedKeeperOfAFullRun(t *testing.T) {
	t.Parallel()
	p, _ := fullRun(t)
	ctx := await.Context(t)
	keeper := exec.CommandContext(ctx, "sleep", "1000")
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.keeper = keeper.Process
	go p.watch(time.Millisecond)
	_ = keeper.Wait()
	close(p.done)
	if ctx.Err() != nil {
		t.Error("it is still there")
	}
}

// A run that has no memory left is ended once, and its keeper hears heartbeats for as long as it is there. More
// commands could fill the pipe of a keeper that does not read.
func TestFullRunIsEndedOnce(t *testing.T) {
	t.Parallel()
	p, commands := fullRun(t)
	p.sandbox = true
	defer close(p.done)
	go p.watch(time.Millisecond)
	pulse.add(p, time.Millisecond)
	ends, beats := 0, 0
	for in := bufio.NewReader(commands); ends == 0 || beats < 5; {
		var c supervise.Command
		if err := supervise.ReadLine(in, &c); err != nil {
			t.Fatal(err)
		}
		if c.Grace == 0 {
			beats++
			continue
		}
		ends++
		if c.Grace != time.Millisecond || c.Sent == 0 || ends > 1 {
			t.Fatalf("command %d is %v", ends, c)
		}
	}
}

// A keeper that does not read holds up no heartbeat of another one, and a command that is being written none either.
func TestHeartbeatsWaitForNothing(t *testing.T) {
	t.Parallel()
	full, _ := fullRun(t)
	busy, _ := fullRun(t)
	p, commands := fullRun(t)
	busy.controlMu.Lock()
	raw, err := full.control.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Write(func(fd uintptr) bool {
		for err = nil; err == nil; {
			_, err = unix.Write(int(fd), heartbeat())
		}
		return true
	})
	for _, one := range []*Process{full, busy, p} {
		defer close(one.done)
		pulse.add(one, time.Millisecond)
	}
	in, before := bufio.NewReader(commands), time.Duration(0)
	for range 3 {
		var c supervise.Command
		if err := supervise.ReadLine(in, &c); err != nil || c.Grace != 0 || c.Sent <= before {
			t.Fatalf("%+v, %v", c, err)
		}
		before = c.Sent
	}
}

// Processes that were left behind and ended by themselves are reaped as they come, not killed at the end, however
// many they are.
func TestManyOrphans(t *testing.T) {
	t.Parallel()
	c, err := new(Program).Start(t.Context(), Order{
		Path: "/bin/bash", Args: []string{"bash", "-c", "for ((i = 0; i < 1000; i++)); do (true &); done"}, Dir: "/",
		OrphanGrace: time.Second,
	}, Sandbox{})
	if err != nil {
		t.Fatal(err)
	}
	<-c.done
	if c.Err != nil || c.Exit.Code != 0 || c.Exit.Stuck != 0 || c.Exit.Swept > 100 {
		t.Errorf("exit = %+v, %v", c.Exit, c.Err)
	}
}

// Where processes cannot start in a group, here because its directory is not one, runs start without.
func TestGroupsThatDoNotWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, g := range map[string]*Groups{"starting": {dir: dir}, "opening": {dir: filepath.Join(dir, "none")}} {
		if g.try() == nil {
			t.Errorf("%s: it counts as possible", name)
		}
		var log strings.Builder
		p := Program{Groups: g, Log: slog.New(slog.NewTextHandler(&log, nil))}
		run, err := p.Start(t.Context(), Order{Path: "/bin/echo", Args: []string{"echo", "hello"}, Dir: "/"}, Sandbox{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := io.ReadAll(run.Stdout)
		<-run.done
		if string(out) != "hello\n" || err != nil || run.Exit.Code != 0 ||
			!strings.Contains(log.String(), "start a run in a control group") {
			t.Errorf("%s: %q, %v, exit %+v, log %s", name, out, err, run.Exit, &log)
		}
	}
}

// Two Groups of one process, of which each has runs, do not use the same directories.
func TestTwoGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, err := (&Groups{dir: dir}).open(Order{})
	if err != nil {
		t.Fatal(err)
	}
	defer one.remove()
	two, err := (&Groups{dir: dir}).open(Order{})
	if err != nil {
		t.Fatal(err)
	}
	defer two.remove()
	if own := filepath.Join(dir, runGroup+strconv.Itoa(os.Getpid())+"-"); one.dir == two.dir ||
		!strings.HasPrefix(one.dir, own) || !strings.HasPrefix(two.dir, own) {
		t.Errorf("%s and %s", one.dir, two.dir)
	}
}

// A mark is that of a dead worker only if that is certain.
func TestMarksOfTheDead(t *testing.T) {
	t.Parallel()
	place, ok := pidNamespace()
	own := WorkerMark()
	if !ok || !strings.HasPrefix(own, place+"/"+strconv.Itoa(os.Getpid())+"/") {
		t.Fatalf("own mark %q, place %q", own, place)
	}
	boot, _, _ := strings.Cut(place, "/")
	for mark, dead := range map[string]bool{
		own:                               false,
		own + "0":                         true, // the process ID was given out again
		place + "/4194305/1":              true, // beyond the largest process ID
		"another/" + own:                  false,
		boot + "/1/" + "4194305/1":        false, // of another namespace
		place:                             false,
		place + "/":                       false,
		place + "/-1/1":                   false, // not a group of processes, nor all of them
		place + "/0/1":                    false,
		place + "/" + strconv.Itoa(1<<30): false,
		"":                                false,
	} {
		if isDead(mark, place) != dead {
			t.Errorf("mark %q: dead %t, want %t", mark, !dead, dead)
		}
	}
}
