package agent

import (
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"golang.org/x/sys/unix"
)

// Of two workers that share a machine and a directory, one is killed together with its keeper. What it left is swept,
// and nothing else.
func TestSweepEndsWhatDeadWorkersLeft(t *testing.T) {
	t.Parallel()
	temp := agenttest.ShortTemp(t)
	r, err := New(Config{LogDir: t.TempDir(), TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		t.Helper()
		if err := r.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	dirs := func() int {
		list, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	env := []string{"AGENT_TEST_CLI=" + fake, "AGENT_TEST_CLI_MODE=mute-hang-marked-ignore-term-never-exit"}
	dying, living := unique("dying"), unique("living")
	dead, left := startWorker(t, dying, newBench(t, "").dir, temp, env...)
	alive, end := startWorker(t, living, newBench(t, "").dir, temp, env...)

	sweep()
	if len(marked(dying)) == 0 || len(marked(living)) == 0 || dirs() != 2 {
		t.Fatalf("of living workers there are processes %v and %v and %d directories", marked(dying),
			marked(living), dirs())
	}

	keeper := parent(t, marked(dying)[0])
	stop(t, dead.Process.Pid) // so that it does not see to it itself that its keeper is gone
	for _, pid := range []int{keeper, dead.Process.Pid} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	_ = dead.Wait()
	if len(marked(dying)) == 0 || dirs() != 2 {
		t.Fatalf("nothing is left of the dead worker to be swept: %v, %d directories", marked(dying), dirs())
	}
	sweep()
	if _, err := io.Copy(io.Discard, left); err != nil || len(marked(dying)) > 0 || dirs() != 1 {
		t.Errorf("left of the dead worker: %v, %d directories, %v", marked(dying), dirs(), err)
	}
	if len(marked(living)) == 0 {
		t.Error("the living worker's run was ended")
	}
	if err := alive.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = alive.Wait()
	if _, err := io.Copy(io.Discard, end); err != nil { // its keeper ends the run
		t.Error(err)
	}
}

// stop stops a child, and returns when none of its threads runs any more: the signal itself only says that they shall.
func stop(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
}
