package agent

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Of two workers that share a machine and a directory, one is killed together with its keeper. What it left is swept, and nothing else.
func TestSweepEndsWhatDeadWorkersLeft(t *testing.T) {
	t.Parallel()
	temp := shortTemp(t)
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
	env := []string{"AGENT_TEST_CLI=/proc/self/exe", "AGENT_TEST_CLI_MODE=mute-hang-marked-ignore-term-never-exit"}
	dying, living := unique("dying"), unique("living")
	dead, left := startWorker(t, dying, newBench(t, "").dir, temp, env...)
	alive, end := startWorker(t, living, newBench(t, "").dir, temp, env...)

	sweep()
	if len(marked(dying)) == 0 || len(marked(living)) == 0 || dirs() != 2 {
		t.Fatalf("of living workers there are processes %v and %v and %d directories", marked(dying), marked(living), dirs())
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

// Neither a directory that only looks like a run's is removed, nor what a link in its place leads to.
func TestSweepKeepsToRunDirectories(t *testing.T) {
	t.Parallel()
	temp, other := shortTemp(t), t.TempDir()
	for _, name := range []string{filepath.Join(other, lockFile), filepath.Join(temp, "er-file")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stranger := filepath.Join(temp, "er-stranger")
	linked := filepath.Join(temp, "er-linked")
	pipe := filepath.Join(temp, "er-pipe")
	for _, dir := range []string{stranger, linked, pipe} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Symlink(filepath.Join(other, lockFile), filepath.Join(linked, lockFile)),
		os.Symlink(other, filepath.Join(temp, "er-link")),
		syscall.Mkfifo(filepath.Join(pipe, lockFile), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	own, err := makeDirs(temp)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := sweepDirs(temp); n != 2 || err != nil { // the link and the pipe's
		t.Errorf("removed %d, %v", n, err)
	}
	for _, path := range []string{stranger, linked, own.Config, filepath.Join(other, lockFile), filepath.Join(temp, "er-file")} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	if err := own.remove(); err != nil {
		t.Error(err)
	}
}
