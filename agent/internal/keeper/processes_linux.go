package keeper

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// selfExecutable starts this very binary again, also after the file was replaced by an upgrade.
const selfExecutable = "/proc/self/exe"

// openProgram opens it for nothing but to be executed: it may be a file that we are not allowed to read.
func openProgram() (*os.File, error) {
	fd, err := unix.Open(selfExecutable, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: selfExecutable, Err: err}
	}
	return os.NewFile(uintptr(fd), selfExecutable), nil
}

// runMarker is the environment variable by which a run's processes are known, its value the run's ID.
const runMarker = "ERRAND_RUN"

// sweepMarked kills every process that has lost its keeper or carries the run's marker, and returns how many it found. It is the second net,
// for the case that a keeper was itself killed: what the tools had started is ours then, or of a reaper between, and still has the environment
// it inherited.
func sweepMarked(run string) int {
	adopted := killAdopted()
	killed := map[int]bool{}
	for range 100 { // a fork can slip through one scan, so scan until nothing is found
		found := marked(run)
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
			killed[pid] = true
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // they are not our children: nothing tells us when they are dead
	}
	return adopted + len(killed)
}

// marked lists the live processes of a run.
func marked(run string) []int {
	return carrying(runMarker, func(id string) bool { return id == run })
}

// carrying lists the live processes that have a variable with such a value in their environment. A process of another user, or one that
// made itself unreadable, is not seen.
func carrying(variable string, such func(value string) bool) []int {
	name := []byte(variable + "=")
	return withVariable(func(v []byte) bool {
		value, ok := bytes.CutPrefix(v, name)
		return ok && such(string(value))
	})
}

// withVariable lists the other processes that this user can read and that have such a variable, NAME=value, in their environment.
func withVariable(such func(v []byte) bool) []int {
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
		// Empty for a zombie, which is as good as gone.
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue
		}
		if slices.ContainsFunc(bytes.Split(env, []byte{0}), such) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// MakePrivate makes this process unreadable to other processes of its user: their shells could otherwise read its environment and
// memory, secrets included, from /proc. Call it first thing in a process that holds secrets. It returns a sentence for the
// operator when that does not help: root can always look.
func MakePrivate() (notice string, err error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return "", fmt.Errorf("make the process non-dumpable: %w", err)
	}
	if os.Geteuid() == 0 {
		return "running as root: outside a sandbox, tools of the agent are root too and can read this process's secrets; run as an ordinary user", nil
	}
	return "", nil
}

// isPrivate reports whether MakePrivate was called and helps, and if not, what would.
func isPrivate() (ok bool, remedy string) {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	switch {
	case os.Geteuid() == 0:
		return false, "run as an ordinary user, or in a sandbox (ERRAND_SANDBOX)"
	case err != nil || dumpable != 0:
		return false, "call MakePrivate first thing in main"
	}
	return true, ""
}

// beginsPrivate reports whether the kernel hides this program's processes from their first instruction on, because their user may execute
// but not read it. MakePrivate comes some milliseconds later.
func beginsPrivate() bool {
	return unix.Faccessat(unix.AT_FDCWD, selfExecutable, unix.R_OK, unix.AT_EACCESS) != nil
}

// readable lists the processes that this user, and so a tool of the agent's, can read, and that hold one of the variables in their environment:
// "1 (tini)".
func readable(variables []string) (holders []string) {
	for _, pid := range withVariable(func(v []byte) bool { return slices.Contains(variables, string(v)) }) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		holders = append(holders, fmt.Sprintf("%d (%s)", pid, bytes.TrimSpace(name)))
	}
	return holders
}
