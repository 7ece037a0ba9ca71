package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// identity identifies a process even if its PID is reused.
type identity struct {
	pid   int
	start string // of the process, in clock ticks since boot, as /proc says it
}

// status is a process's /proc/<pid>/stat.
type status struct {
	identity
	parent int
	dead   bool // a zombie: its connections are closed
}

// look reads the state of a process. It returns false if there is no process with that PID.
func look(pid int) (status, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return status{}, false
	}
	// The name, in parentheses, can contain anything, including parentheses.
	_, rest, _ := strings.Cut(string(data), " ")
	rest = rest[strings.LastIndex(rest, ")")+1:]
	f := strings.Fields(rest) // from the third field on: state, ppid, …; the start is the 22nd
	if len(f) < 20 {
		return status{}, false
	}
	parent, _ := strconv.Atoi(f[1])
	return status{identity: identity{pid, f[19]}, parent: parent, dead: strings.ContainsAny(f[0], "ZX")}, true
}

// alive reports whether the same process still runs.
func (i identity) alive() bool {
	s, ok := look(i.pid)
	return ok && !s.dead && s.identity == i
}

// kill sends a signal to the same process. It takes a handle (on Linux a pidfd) before it checks the identity, so that
// the signal cannot reach another process with a reused PID.
func (i identity) kill(sig syscall.Signal) error {
	p, err := os.FindProcess(i.pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", i.pid, err)
	}
	defer func() { _ = p.Release() }()
	if !i.alive() {
		return fmt.Errorf("signal process %d: %w", i.pid, os.ErrProcessDone)
	}
	if err := p.Signal(sig); err != nil {
		return fmt.Errorf("signal process %d: %w", i.pid, err)
	}
	return nil
}

// marked lists the processes of runs whose environment names a path below dir, the harness's directory. Other fleets on
// this machine use the same marker.
func marked(dir string) []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // empty of a zombie
		if err == nil && bytes.Contains(env, []byte("\x00ERRAND_RUN=")) && bytes.Contains(env, []byte(dir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}
