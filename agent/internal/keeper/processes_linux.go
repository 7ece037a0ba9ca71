package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// killAll kills processes of runs, and the process group of each: a fork bomb has more processes than a list can hold,
// but all members of a group die at once. A group belongs to one run, because it is within a session, and each keeper
// starts a session.
func killAll(pids []int) {
	own := unix.Getpgrp()
	for _, pid := range pids {
		if group, err := unix.Getpgid(pid); err == nil && group > 1 && group != own {
			_ = unix.Kill(-group, unix.SIGKILL)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// descendants lists all processes below root, parents before their children, and counts their threads.
func descendants(root int) (all []int, threads int) {
	for next := children(root); len(next) > 0; {
		all = append(all, next...)
		var found []int
		for _, pid := range next {
			list, n := childrenAndThreads(pid)
			found = append(found, list...)
			threads += n
		}
		next = found
	}
	return all, threads
}

// children lists the processes whose parent is pid.
func children(pid int) []int {
	pids, _ := childrenAndThreads(pid)
	return pids
}

// childrenAndThreads reads the kernel's list of a process's children, which is per thread: a child belongs to the
// thread that forked it.
func childrenAndThreads(pid int) (pids []int, threads int) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, 0 // it is gone, and its children belong to the subreaper now: the next round finds them
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

// exited reports whether a child of this process is dead, so that waiting for it returns at once.
func exited(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// processState returns the state of a process, as a letter, and its start time in clock ticks since boot.
func processState(pid int) (state, start string, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	// The second field, the program's name, may hold anything: fields are counted after it. The start is the 22nd.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "", "", errors.New("read the start of a process: unexpected format of /proc/<pid>/stat")
	}
	return fields[0], fields[19], nil
}

// suspended reports whether a process does nothing until it gets SIGCONT.
func suspended(pid int) bool {
	state, _, err := processState(pid)
	return err == nil && state == "T"
}

// withVariable lists the other processes whose environment this user can read and that have a matching variable,
// NAME=value.
func withVariable(match func(v []byte) bool) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // empty for a zombie
		if err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), match) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// withValue lists the processes that have a variable with a matching value.
func withValue(variable string, match func(value string) bool) []int {
	name := []byte(variable + "=")
	return withVariable(func(v []byte) bool {
		value, ok := bytes.CutPrefix(v, name)
		return ok && match(string(value))
	})
}

// WithEnvironment lists the processes that this user, and so a tool of the agent, can read, and that have one of the
// variables in their environment: "1 (tini)".
func WithEnvironment(variables []string) (holders []string) {
	for _, pid := range withVariable(func(v []byte) bool { return slices.Contains(variables, string(v)) }) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		holders = append(holders, fmt.Sprintf("%d (%s)", pid, bytes.TrimSpace(name)))
	}
	return holders
}

// A tool without a sandbox is a process of the keeper's user, and can kill it. What the run had started is then
// re-parented to the next child subreaper above, the worker, which has other children too. Two things distinguish the
// processes of a run:
//
//   - Each carries a mark that it cannot remove: its hard limit of file locks, which no kernel since 2.4.25 enforces. The limit is
//     inherited, whatever a program does to its environment, session or parent, and only a privileged process may raise it.
//   - While a run's keeper lives, everything of the run is below it. So a marked child of the worker is a keeper or has lost its keeper.

// liveKeepers has the keepers that this process has started, by process ID. It is global because child processes are.
var liveKeepers sync.Map

// BecomeSubreaper makes this process adopt the orphans of its keepers, and those of all its other children.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a child subreaper: %w", err)
	}
	return nil
}

// lockLimit returns the limit of file locks that marks the processes of this worker's runs, or a lower one if a tool
// has lowered it; 0 if there is no room below the worker's own limit. It grows with the process ID, so that processes
// left by a worker that this one started, in tests for example, are not mistaken for its own.
func lockLimit() uint64 {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_LOCKS, &own) != nil || own.Max == 0 {
		return 0
	}
	return min(own.Max-1, 1<<30+uint64(os.Getpid())) //nolint:gosec // a process ID is positive
}

// setLockLimit marks every process that this one starts from now on.
func setLockLimit(limit uint64) {
	_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: limit, Max: limit})
}

// adopted lists the children of this process that were started in a run and have lost their keeper, including zombies.
func adopted() (pids []int) {
	limit := lockLimit()
	if limit == 0 {
		return nil // nothing could be marked
	}
	for _, pid := range children(os.Getpid()) {
		var its unix.Rlimit
		if _, keeper := liveKeepers.Load(pid); !keeper && unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &its) == nil && its.Max <= limit {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killAdopted kills and reaps adopted processes and all that is below them, and returns how many it killed. When it
// returns, nothing that had lost its keeper before is left, unless it does not die within killTimeout.
func killAdopted() int {
	killed := map[int]bool{}
	for stop := time.Now().Add(killTimeout); time.Now().Before(stop); {
		found := adopted()
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			below, _ := descendants(pid)
			for _, p := range append(below, pid) {
				if !exited(p) {
					killed[p] = true
				}
			}
			killAll(append(below, pid))
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // killed, not yet dead: wait4 has no timeout
	}
	return len(killed)
}

// zombies are dead children that nothing has waited for yet, by process ID: an orphan of a git that was killed, or a
// child of os/exec that has just ended.
var zombies struct {
	sync.Mutex
	seen map[int]zombie
}

type zombie struct {
	start string // of the process: its ID may be reused
	since time.Time
	looks int
}

// reapZombies reaps dead children that nothing has waited for in a minute and three calls: os/exec waits from the
// start. They would fill the process table; without a subreaper they would have been init's.
func reapZombies() {
	zombies.Lock()
	defer zombies.Unlock()
	now, seen := time.Now(), map[int]zombie{}
	for _, pid := range children(os.Getpid()) {
		if _, keeper := liveKeepers.Load(pid); keeper || !exited(pid) {
			continue
		}
		_, start, err := processState(pid)
		if err != nil {
			continue
		}
		z := zombies.seen[pid]
		if z.start != start {
			z = zombie{start: start, since: now}
		}
		if z.looks++; z.looks > 3 && now.Sub(z.since) > time.Minute {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			continue
		}
		seen[pid] = z
	}
	zombies.seen = seen
}

// oomKills returns how many processes of this process's memory cgroup the kernel has killed for lack of memory; 0 if
// that cannot be read. A signal does not say who sent it: if this number grew while a run lived, it was the kernel and
// not a tool.
func oomKills(proc, cgroups string) int64 {
	list, err := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(list)) {
		// hierarchy:controllers:path. Version 2 has one hierarchy, number 0 and without controllers; if both versions
		// are mounted, memory belongs to one of them, and the other has no such file.
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		var dir, file string
		switch {
		case part[1] == "memory":
			dir, file = "memory", "memory.oom_control"
		case part[0] == "0" && part[1] == "":
			dir, file = "", "memory.events"
		default:
			continue
		}
		// In a container the path may be the host's, while the mount begins at the container's own.
		for _, path := range []string{part[2], "/"} {
			if n, ok := counter(filepath.Join(cgroups, dir, path, file), "oom_kill"); ok {
				return n
			}
		}
	}
	return 0
}

// counter reads one number from a file that has a name and a number per line.
func counter(path, name string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && key == name {
			return n, true
		}
	}
	return 0, false
}
