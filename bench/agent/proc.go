package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What the kernel counts of a process's memory.
const (
	resident = "VmRSS" // what it has in memory, shared pages included
	peak     = "VmHWM" // the most it ever had. ru_maxrss will not do: after fork and exec it begins with the parent's.
)

// memoryOf reads one of the above, in bytes.
func memoryOf(pid int, what string) (int64, error) {
	return kilobytes(fmt.Sprintf("/proc/%d/status", pid), what)
}

// proportional is the memory of a process with each shared page divided by those who share it. Only its owner and root may know; a
// keeper lets nobody, so for anybody but root it is all that the process has, which is more.
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

// children lists the children of this process: where only runs are started, their keepers.
func children() (pids []int, err error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended has none
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
