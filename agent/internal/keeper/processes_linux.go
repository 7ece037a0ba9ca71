package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// killAll kills processes of runs, and the process group of each: a fork bomb has more processes than a list can hold, but all members of
// a group die at once. A group belongs to one run, because it is within a session, and each keeper starts a session.
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

// childrenAndThreads reads the kernel's list of a process's children, which is per thread: a child belongs to the thread that forked it.
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

// withVariable lists the other processes whose environment this user can read and that have a matching variable, NAME=value.
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

// WithEnvironment lists the processes that this user, and so a tool of the agent, can read, and that have one of the variables in their
// environment: "1 (tini)".
func WithEnvironment(variables []string) (holders []string) {
	for _, pid := range withVariable(func(v []byte) bool { return slices.Contains(variables, string(v)) }) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		holders = append(holders, fmt.Sprintf("%d (%s)", pid, bytes.TrimSpace(name)))
	}
	return holders
}
