package agent

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/keeper"
	"golang.org/x/sys/unix"
)

// A killed worker's run is ended by its keeper, escaped processes included, and leaves no directory behind.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	killWorker(t, unique("killed"), newBench(t, "").dir, agenttest.ShortTemp(t), "AGENT_TEST_CLI="+fake)
}

// killWorker starts a worker that keeps its runs in temp, and kills it while one works in dir.
func killWorker(t *testing.T, run, dir, temp string, env ...string) {
	t.Helper()
	worker, alive := startWorker(t, run, dir, temp, env...)
	keeperFD, err := unix.PidfdOpen(parent(t, marked(run)[0]), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(keeperFD)
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	if _, err := io.Copy(io.Discard, alive); err != nil { // ends when the last of them is dead
		t.Fatal(err)
	}
	if left := marked(run); len(left) > 0 {
		t.Errorf("alive: %v", left)
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(keeperFD), Events: unix.POLLIN}}, 10_000) // the keeper itself
	}
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// startWorker starts a worker and returns when all processes of its run are there; alive ends with the last of them.
func startWorker(t *testing.T, run, dir, temp string, env ...string) (worker *exec.Cmd, alive *os.File) {
	t.Helper()
	fifo := filepath.Join(dir, "alive")
	worker = exec.Command("/proc/self/exe")
	worker.Env = slices.Concat(os.Environ(), env, []string{
		"AGENT_TEST_MODE=worker", "AGENT_TEST_RUN=" + run, "AGENT_TEST_DIR=" + dir, "AGENT_TEST_ALIVE=" + fifo,
		"TMPDIR=" + temp,
	})
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	alive, err := os.Open(fifo) // waits for the fake CLI to open it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = alive.Close() })
	if _, err := io.ReadFull(alive, make([]byte, 1)); err != nil { // and for its children
		t.Fatal(err)
	}
	return worker, alive
}

// A keeper that is killed, or stopped, as a tool may do, takes the CLI with it, and all that it has started, including
// processes in other sessions and has none of its environment. Other runs go on. In a sandbox it is the first process,
// and the kernel kills all others with it: even processes that we would not find.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test := func(t *testing.T, b *bench) {
				id := unique("keeper-" + name + "-" + string(b.cfg.Sandbox))
				other := agenttest.Lead(t, `setsid env -i sleep 1000 & echo up; read x; echo "still here"`)
				h := &host{on: onFirstText(func() {
					if err := syscall.Kill(parent(t, marked(id)[0]), sig); err != nil {
						t.Error(err)
					}
				})}
				res := b.run(t, t.Context(), Spec{ID: id, Limit: time.Minute}, h)
				if res.Outcome != Failed || res.Error.Class != ClassKilled ||
					b.cfg.Sandbox == SandboxNone && res.Resources.Swept < 2 {
					t.Errorf("result %+v", res)
				}
				b.gone(t)
				_ = other.Stdin.Close()
				other.Expect(t, "still here")
				other.Ended(t)
			}
			if sig == syscall.SIGKILL {
				inBoth(t, "hang-escape", test)
			} else { // in a sandbox tools cannot stop it
				test(t, newBench(t, "hang-escape"))
			}
		})
	}
}

// A stopped worker should lose its run like a dead one, before another may take it over, and continue afterwards.
func TestWorkerFrozen(t *testing.T) {
	t.Parallel()
	b, run := newBench(t, ""), unique("frozen")
	worker, alive := startWorker(t, run, b.dir, agenttest.ShortTemp(t), "AGENT_TEST_CLI="+fake, "AGENT_TEST_SILENT=2s")
	stopped := time.Now()
	if err := worker.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, alive); err != nil { // ends when the last of them is dead
		t.Fatal(err)
	}
	t.Logf("all were dead after %s", time.Since(stopped))
	if err := worker.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "result"))
	if want := "failed worker_frozen"; err != nil || string(text) != want {
		t.Errorf("the run ended as %q, %v; want %q", text, err, want)
	}
}

// parent finds the keeper above a process of a run.
func parent(t *testing.T, pid int) int {
	t.Helper()
	for {
		pid = parentOf(t, pid)
		if cmd,
			_ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); strings.Contains(string(cmd), keeper.Name) {
			return pid
		}
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	pid, _ = strconv.Atoi(strings.Fields(rest)[1])
	return pid
}
