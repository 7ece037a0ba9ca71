package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Fields of /proc/<pid>/status for a process's memory.
const (
	resident = "VmRSS" // resident memory, including shared pages
	peak     = "VmHWM" // the peak. ru_maxrss is unsuitable, because after fork and exec it starts with the parent's.
)

// memoryOf reads one of the above, in bytes.
func memoryOf(pid int, what string) (int64, error) {
	return kilobytes(fmt.Sprintf("/proc/%d/status", pid), what)
}

// proportional returns the memory of a process with each shared page divided by its users. Only root can read it for a
// keeper; for other users this is the whole memory of the process, which is more.
func proportional(pid int) (int64, error) {
	if os.Geteuid() != 0 {
		return memoryOf(pid, resident)
	}
	return kilobytes(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss")
}

func kilobytes(file, field string) (int64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	for line := range bytes.Lines(data) {
		name, value, _ := strings.Cut(string(line), ":")
		if name != field {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read memory: %s of %s: %w", field, file, err)
		}
		return n << 10, nil
	}
	return 0, fmt.Errorf("read memory: %s has no %s", file, field)
}

// children lists the children of this process. If it starts only runs, these are keepers.
func children() (pids []int, err error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(data)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("list children: %w", err)
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
