package keeper

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The cases of supervision.md §2 that a keeper with any leader shows: here a shell, with $ALIVE to be held open by all that it starts.

// leader is a shell under a keeper.
type leader struct {
	*child
	*bench
	out *bufio.Reader
}

// prelude holds $ALIVE open, and gives the script a nap without an end and without a child, during which traps are looked at often: a shell
// may miss the signal that comes just before it waits.
const prelude = `exec 9>"$ALIVE" 8<> <(:); nap() { while :; do read -t 0.1 -u 8; done; }; `

// lead starts a script and returns when it has said "up".
func lead(t *testing.T, script string) leader {
	t.Helper()
	b := newBench(t, "")
	fifo := filepath.Join(b.dir, "alive")
	c, err := startChild(t.Context(), startOrder{
		Path: "/bin/bash", Args: []string{"bash", "-c", prelude + script}, Env: []string{"PATH=" + os.Getenv("PATH"), "ALIVE=" + fifo},
		Dir: "/", Orphan: time.Second,
	}, box{})
	if err != nil {
		t.Fatal(err)
	}
	l := leader{c, b, bufio.NewReader(c.Stdout)}
	t.Cleanup(func() {
		l.Term(0)
		<-l.done
	})
	l.expect(t, "up")
	return l
}

func (l leader) expect(t *testing.T, want string) {
	t.Helper()
	if got, err := l.out.ReadString('\n'); strings.TrimSpace(got) != want {
		t.Fatalf("the leader said %q, %v; want %q", got, err, want)
	}
}

// ended waits for the keeper's last word and checks that it is true.
func (l leader) ended(t *testing.T) exitStatus {
	t.Helper()
	<-l.done
	if l.err != nil || l.exit.Stuck != 0 {
		t.Errorf("exit = %+v, %v", l.exit, l.err)
	}
	l.gone(t)
	if _, err := io.Copy(io.Discard, l.out); err != nil {
		t.Errorf("read the rest: %v", err)
	}
	return l.exit
}

// Processes are born faster than a list of them can be read: in sessions of their own that ignore TERM, and as relays, whose only living
// member is always the youngest. They end with the test's directory if the keeper should not end them.
func TestSuperviseForkStorm(t *testing.T) {
	t.Parallel()
	l := lead(t, `trap '' TERM
		storm() { while [ -e "$ALIVE" ]; do (:) & (:) & wait; done; }
		relay() { [ -e "$ALIVE" ] && relay & }
		export -f storm relay
		for i in 1 2 3; do setsid bash -c 'storm' & setsid bash -c 'relay' & done
		echo up; wait; nap`)
	l.Term(100 * time.Millisecond)
	if exit := l.ended(t); exit.Signal != "SIGKILL" || exit.Swept < 3 {
		t.Errorf("exit = %+v", exit)
	}
}

// A stopped process keeps TERM pending, so it is woken to take it; those that it stopped as well are killed where they are.
func TestSuperviseStoppedTree(t *testing.T) {
	t.Parallel()
	l := lead(t, `trap 'exit 7' TERM
		setsid bash -c 'kill -STOP $PPID; echo up; kill -STOP $$' &
		nap`)
	l.Term(time.Minute)
	if exit := l.ended(t); exit.Code != 7 || exit.Swept != 1 {
		t.Errorf("exit = %+v, want code 7 and one process swept", exit)
	}
}

// Only the leader can end its tools in an orderly way, so it alone is asked; git in the midst of writing its index is not.
func TestSuperviseTermGoesToTheLeader(t *testing.T) {
	t.Parallel()
	l := lead(t, `trap 'echo the leader was asked; exit 0' TERM
		(trap 'echo the child was asked' TERM; echo up; nap) & nap`)
	l.Term(time.Minute)
	rest, err := io.ReadAll(l.out)
	if exit := l.ended(t); string(rest) != "the leader was asked\n" || err != nil || exit.Code != 0 || exit.Swept == 0 {
		t.Errorf("%q, %v, exit %+v", rest, err, exit)
	}
}

// A later TERM can only hurry; from any number of goroutines, and when all is over.
func TestSuperviseTermAgain(t *testing.T) {
	t.Parallel()
	l := lead(t, `trap '' TERM; echo up; nap`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { l.Term(time.Hour) })
	}
	l.Term(50 * time.Millisecond)
	l.Term(time.Hour)
	if exit := l.ended(t); exit.Signal != "SIGKILL" || !exit.Stopped {
		t.Errorf("exit = %+v", exit)
	}
	all.Wait()
	l.Term(time.Second)
}

// A signal to everything at once, as a terminal or an init sends it, is no reason for the keeper to go before its run.
func TestSuperviseSignalsToTheKeeper(t *testing.T) {
	t.Parallel()
	l := lead(t, `echo up; echo $PPID; read x; echo "still here"`)
	line, err := l.out.ReadString('\n')
	keeper, perr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || perr != nil {
		t.Fatal(err, perr)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE} {
		if err := syscall.Kill(keeper, s); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Stdin.Close()
	l.expect(t, "still here")
	if exit := l.ended(t); exit.Code != 0 || exit.Stopped {
		t.Errorf("exit = %+v", exit)
	}
}

// The kernel's death signal is sent when the thread ends that forked: nothing between worker and keeper may depend on a thread.
func TestSuperviseThreadEnds(t *testing.T) {
	t.Parallel()
	started, thread := make(chan leader, 1), 0
	var start func()
	start = func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		if thread = unix.Gettid(); thread == os.Getpid() {
			defer runtime.UnlockOSThread() // but for the first one, which never does
			var other sync.WaitGroup
			other.Go(start)
			other.Wait()
			return
		}
		defer close(started)
		started <- lead(t, `echo up; read x; echo "still here"`)
	}
	go start()
	l, ok := <-started
	if !ok {
		t.FailNow() // lead has said why
	}
	for {
		if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(thread)); err != nil {
			break
		}
		runtime.Gosched()
	}
	_ = l.Stdin.Close()
	l.expect(t, "still here")
	l.ended(t)
}

// The exit code is the leader's own, whoever else dies at the same time.
func TestSuperviseExitCodeAmongOrphans(t *testing.T) {
	t.Parallel()
	l := lead(t, `for ((i = 0; i < 200; i++)); do (sh -c 'exit 9' &); done; echo up; exit 7`)
	if exit := l.ended(t); exit.Code != 7 || exit.Signal != "" {
		t.Errorf("exit = %+v, want code 7", exit)
	}
}

// What a run used is what all of its processes used: those their parents waited for, and orphans. Each burns until it has itself counted
// enough.
func TestSuperviseResources(t *testing.T) {
	t.Parallel()
	const burn = 100 * time.Millisecond
	b := newBench(t, "hostile burn", func(c *Config) { c.Env["AGENT_TEST_BURN"] = burn.String() })
	res := b.run(t, t.Context(), Spec{}, &host{})
	if r := res.Resources; res.Text != "burnt" || r.CPU < 3*burn || r.MaxRSS < burnSize {
		t.Errorf("%v: CPU %v of at least %v, largest process %d of at least %d", res.Error, r.CPU, 3*burn, r.MaxRSS, burnSize)
	}
}

// A worker whose file was replaced by an upgrade goes on with the program that it is.
func TestSuperviseReplacedBinary(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	program := filepath.Join(b.dir, "worker")
	copyProgram(t, program)
	worker := exec.Command(program)
	worker.Env = append(os.Environ(), "AGENT_TEST_MODE=replaced", "AGENT_TEST_ID="+unique("replaced"), "AGENT_TEST_DIR="+b.dir, "TMPDIR="+shortTemp(t))
	out, err := worker.CombinedOutput()
	if err != nil || string(out) != "done echo: hello" {
		t.Errorf("%s, %v", out, err)
	}
}

// copyProgram makes a copy of this program. No other test may fork meanwhile: its child would have the copy open for writing for a moment,
// and a file that is open for writing cannot be executed (golang/go#22315).
func copyProgram(t *testing.T, path string) {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
}
