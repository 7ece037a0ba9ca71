package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// KillAll kills processes of runs, and the process group of each: a fork bomb has more processes than a list can hold,
// but all members of a group die at once. A group belongs to one run, because it is within a session, and each keeper
// starts a session.
func KillAll(pids []int) {
	own := unix.Getpgrp()
	for _, pid := range pids {
		if group, err := unix.Getpgid(pid); err == nil && group > 1 && group != own {
			_ = unix.Kill(-group, unix.SIGKILL)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// Descendants lists all processes below root, parents before their children, and counts their threads.
func Descendants(root int) (all []int, threads int) {
	for next := Children(root); len(next) > 0; {
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

// Children lists the processes whose parent is pid.
func Children(pid int) []int {
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
		list, err := readFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
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

// withoutCores keeps processes from leaving their memory in the clone.
func withoutCores() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }

// Exited reports whether a child of this process is dead, so that waiting for it returns at once.
func Exited(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// ProcessState returns the state of a process, as a letter, and its start time in clock ticks since boot.
func ProcessState(pid int) (state, start string, err error) {
	stat, err := readFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	fields, err := statFields(stat)
	if err != nil {
		return "", "", err
	}
	return fields[0], fields[19], nil
}

// statFields returns the fields of /proc/<pid>/stat from the third one, the state, to at least the 22nd, the start. The
// second one, the program's name, may hold anything.
func statFields(stat []byte) ([]string, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return nil, errors.New("read the state of a process: unexpected format of /proc/<pid>/stat")
	}
	return fields, nil
}

// BecomeSubreaper makes this process adopt the orphans of its keepers, and those of all its other children.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a child subreaper: %w", err)
	}
	return nil
}

// setLockLimit marks every process that this one starts from now on.
func setLockLimit(limit uint64) {
	_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: limit, Max: limit})
}

// readFile is os.ReadFile for files of the kernel, with less garbage.
func readFile(path string) (data []byte, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	for buffer := make([]byte, 4<<10); ; {
		n, err := unix.Read(fd, buffer)
		if err != nil || n == 0 {
			return data, err
		}
		data = append(data, buffer[:n]...)
	}
}

// oomKills returns how many processes of this process's memory cgroup the kernel has killed for lack of memory; 0 if
// that cannot be read. A signal does not say who sent it: if this number grew while a run lived, it was the kernel and
// not a tool.
func oomKills(proc, cgroups string) int64 {
	list, err := readFile(filepath.Join(proc, "self/cgroup"))
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
			if n, ok := Counter(filepath.Join(cgroups, dir, path, file), "oom_kill"); ok {
				return n
			}
		}
	}
	return 0
}

// Counter reads one number from a file that has a name and a number per line.
func Counter(path, name string) (int64, bool) {
	data, err := readFile(path)
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
