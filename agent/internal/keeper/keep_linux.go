package keeper

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keep runs a keeper to its end and returns the exit code of its process, which only says whether the keeper itself worked.
func keep(control, status *os.File) int {
	// The kernel delivers Pdeathsig when the thread that forked ends, so this thread has to live as long as the process.
	runtime.LockOSThread()
	// A tool of the run is a process of the same user: it must not read the credential out of this one (/proc/<pid>/mem).
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		say(status, startStatus{Error: fmt.Sprintf("become a child subreaper: %v", err)})
		return 1
	}
	// Caught and dropped rather than ignored: an ignored signal would be inherited by the CLI and by everything it starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE)

	in := bufio.NewReader(control)
	var order startOrder
	if err := readLine(in, &order); err != nil {
		say(status, startStatus{Error: fmt.Sprintf("read the start order: %v", err)})
		return 1
	}
	if order.Alone {
		if err := lendListener(); err != nil {
			say(status, startStatus{Error: err.Error()})
			return 1
		}
	}
	if order.Mark > 0 {
		markBirth(order.Mark)
	}
	killed := oomKills("/proc", "/sys/fs/cgroup")
	leader, err := startLeader(order)
	if err != nil {
		s := startStatus{Error: err.Error()}
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			s.Errno = int(errno)
		}
		say(status, s)
		return 1
	}
	say(status, startStatus{})
	_ = os.Stdin.Close() // the CLI holds its own; ours would hide from the worker that nobody reads any more

	g := governor{pid: leader.Process.Pid, order: order}
	g.govern(in)
	final := reapAll(leader)
	final.Stopped, final.Silence, final.Processes = g.stopped, g.silence, g.processes
	final.OOM = max(0, oomKills("/proc", "/sys/fs/cgroup")-killed)
	if g.orphaned && order.Remove != "" {
		_ = os.RemoveAll(order.Remove)
	}
	say(status, final)
	return 0
}

// startLeader starts the CLI in a process group of its own, so that what stays in that group can be killed at once.
func startLeader(order startOrder) (*exec.Cmd, error) {
	cmd := &exec.Cmd{
		Path: order.Path, Args: order.Args, Env: order.Env, Dir: order.Dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if order.Secret != "" {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("open the credential pipe: %w", err)
		}
		defer r.Close()
		// A credential is far shorter than a pipe's buffer, so this does not wait for the CLI to read.
		_, err = io.WriteString(w, order.Secret)
		if cerr := w.Close(); err != nil || cerr != nil {
			return nil, fmt.Errorf("write the credential pipe: %w", errors.Join(err, cerr))
		}
		cmd.ExtraFiles = []*os.File{r} // descriptor 3
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", order.Path, err)
	}
	// When memory runs out, the kernel shall take an agent rather than the worker. Children inherit it.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", cmd.Process.Pid), []byte("500"), 0o600)
	return cmd, nil
}

// reapOrphans reaps our dead children but the leader: what tools left behind and what then ended by itself. A run of hours would
// otherwise fill the table of processes.
func reapOrphans(leader int) {
	for _, pid := range children(os.Getpid()) {
		if pid != leader {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// reapAll kills and reaps everything the leader left behind. ECHILD proves that nothing is left: whatever it started became our
// child when its own parent died.
func reapAll(leader *exec.Cmd) exitStatus {
	s := exitStatus{Code: -1}
	_ = unix.Kill(-leader.Process.Pid, unix.SIGKILL)
	if over(leader.Process.Pid) {
		_ = leader.Wait() // its error repeats what the state says
		s.Code = leader.ProcessState.ExitCode()
		if ws, ok := leader.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			s.Signal = unix.SignalName(ws.Signal())
		}
	}
	for stop := time.Now().Add(sweepLimit); ; {
		left, _ := descendants(os.Getpid())
		killRun(left)
		for {
			var ws unix.WaitStatus
			pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
			if errors.Is(err, unix.ECHILD) {
				return withUsage(s)
			}
			if pid > 0 && ws.Signaled() {
				s.Swept++ // not one that had ended before
			}
			if pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		if time.Now().After(stop) {
			s.Stuck = len(left)
			return withUsage(s)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // killed, not yet dead: wait4 cannot wait for "any, but not for ever"
	}
}

// over reports whether a child of ours is dead, so that waiting for it does not wait.
func over(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

func withUsage(s exitStatus) exitStatus {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &u) == nil {
		s.CPU = time.Duration(u.Utime.Nano() + u.Stime.Nano())
		s.MaxRSS = u.Maxrss << 10 // the kernel counts KiB
	}
	return s
}

// killRun kills all processes of a keeper's run, of which it knows some.
func killRun(known []int) {
	if os.Getpid() == 1 { // the first process of a sandbox, in which there is nothing else
		_ = unix.Kill(-1, unix.SIGKILL)
	}
	killAll(known)
}

// killAll kills processes of runs, and with each its process group at once: of a fork bomb more are born than a list can hold, but whoever
// is of the group dies with it, also those that are not on the list. A group has members of one run alone, for it is within a session, and
// each keeper begins one.
func killAll(pids []int) {
	own := unix.Getpgrp()
	for _, pid := range pids {
		if group, err := unix.Getpgid(pid); err == nil && group > 1 && group != own {
			_ = unix.Kill(-group, unix.SIGKILL)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// descendants lists all processes below one, parents before their children, and says how many threads they have.
func descendants(root int) (all []int, threads int) {
	for next := children(root); len(next) > 0; {
		all = append(all, next...)
		var found []int
		for _, pid := range next {
			list, n := offspring(pid)
			found = append(found, list...)
			threads += n
		}
		next = found
	}
	return all, threads
}

// children are the processes whose parent is pid.
func children(pid int) []int {
	pids, _ := offspring(pid)
	return pids
}

// offspring reads the kernel's own list of a process's children, per thread: a child belongs to the thread that forked it.
func offspring(pid int) (pids []int, threads int) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, 0 // it is gone, and its children are ours now: the next round finds them
	}
	for _, task := range tasks {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for n := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(n); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids, len(tasks)
}

func readLine(r *bufio.Reader, v any) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}
