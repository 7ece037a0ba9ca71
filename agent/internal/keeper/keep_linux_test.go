package keeper_test

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
)

// TestMain lets the test binary be a keeper.
func TestMain(m *testing.M) {
	if self, err := os.Executable(); err == nil && filepath.Base(self) == "slow" {
		_ = syscall.Pause() // prints no version
	}
	supervise.Main()
	// These tests wait more than they compute. The flag -parallel, which is read later, overrides it.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Process tree cases that need a keeper with any leader, here a shell.

// Processes are born faster than a list of them can be read: in sessions of their own that ignore TERM, and as
// relays, whose only living
// member is always the youngest. They end with the test's directory if the keeper should not end them.
func TestSuperviseForkStorm(t *testing.T) {
	t.Parallel()
	l := agenttest.Lead(t, `trap '' TERM
		storm() { while [ -e "$ALIVE" ]; do (:) & (:) & wait; done; }
		relay() { [ -e "$ALIVE" ] && relay & }
		export -f storm relay
		for i in 1 2 3; do setsid bash -c 'storm' & setsid bash -c 'relay' & done
		echo up; wait; nap`)
	l.Term(100 * time.Millisecond)
	if exit := l.Ended(t); exit.Signal != "SIGKILL" || exit.Swept < 3 {
		t.Errorf("exit = %+v", exit)
	}
}

// A stopped process keeps TERM pending, so it is woken to take it; those that it stopped as well are killed where
// they are.
func TestSuperviseStoppedTree(t *testing.T) {
	t.Parallel()
	l := agenttest.Lead(t, `trap 'exit 7' TERM
		setsid bash -c 'kill -STOP $PPID; echo up; kill -STOP $$' &
		nap`)
	l.Term(time.Minute)
	if exit := l.Ended(t); exit.Code != 7 || exit.Swept != 1 {
		t.Errorf("exit = %+v, want code 7 and one process swept", exit)
	}
}

// Only the leader can end its tools cleanly, so only it gets the signal; a git that is writing its index does not.
func TestSuperviseTermGoesToTheLeader(t *testing.T) {
	t.Parallel()
	l := agenttest.Lead(t, `trap 'echo the leader was asked; exit 0' TERM
		(trap 'echo the child was asked' TERM; echo up; nap) & nap`)
	l.Term(time.Minute)
	rest, err := io.ReadAll(l.Out)
	if exit := l.Ended(t); string(rest) != "the leader was asked\n" || err != nil || exit.Code != 0 || exit.Swept == 0 {
		t.Errorf("%q, %v, exit %+v", rest, err, exit)
	}
}

// A later TERM can only hurry; from any number of goroutines, and when all is over.
func TestSuperviseTermAgain(t *testing.T) {
	t.Parallel()
	l := agenttest.Lead(t, `trap '' TERM; echo up; nap`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { l.Term(time.Hour) })
	}
	l.Term(50 * time.Millisecond)
	l.Term(time.Hour)
	if exit := l.Ended(t); exit.Signal != "SIGKILL" || !exit.Stopped {
		t.Errorf("exit = %+v", exit)
	}
	all.Wait()
	l.Term(time.Second)
}

// A signal to everything at once, as a terminal or an init sends it, is no reason for the keeper to go before its run.
func TestSuperviseSignalsToTheKeeper(t *testing.T) {
	t.Parallel()
	l := agenttest.Lead(t, `echo up; echo $PPID; read x; echo "still here"`)
	line, err := l.Out.ReadString('\n')
	keeper, perr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || perr != nil {
		t.Fatal(err, perr)
	}
	for _, s := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE,
	} {
		if err := syscall.Kill(keeper, s); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Stdin.Close()
	l.Expect(t, "still here")
	if exit := l.Ended(t); exit.Code != 0 || exit.Stopped {
		t.Errorf("exit = %+v", exit)
	}
}

// The kernel's death signal is sent when the thread ends that forked: nothing between worker and keeper may depend
// on a thread.
func TestSuperviseThreadEnds(t *testing.T) {
	t.Parallel()
	started, thread := make(chan agenttest.Leader, 1), 0
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
		started <- agenttest.Lead(t, `echo up; read x; echo "still here"`)
	}
	go start()
	l, ok := <-started
	if !ok {
		t.FailNow() // Lead has reported why
	}
	for stop := time.Now().Add(2 * time.Minute); ; <-time.After(time.Millisecond) { // nothing reports its end
		if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(thread)); err != nil {
			break
		}
		if time.Now().After(stop) {
			t.Fatalf("thread %d does not end", thread)
		}
	}
	_ = l.Stdin.Close()
	l.Expect(t, "still here")
	l.Ended(t)
}

// The exit code is the leader's, even if other processes die at the same time.
func TestSuperviseExitCodeAmongOrphans(t *testing.T) {
	t.Parallel()
	l := agenttest.Lead(t, `for ((i = 0; i < 200; i++)); do (sh -c 'exit 9' &); done; echo up; exit 7`)
	if exit := l.Ended(t); exit.Code != 7 || exit.Signal != "" {
		t.Errorf("exit = %+v, want code 7", exit)
	}
}
