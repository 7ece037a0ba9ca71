package config

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
)

// perRun is what one CLI needs: about 200 MB after a turn, 230 MB while it streams (measured with CLI 2.1.329).
const perRun = 250 << 20

// slots is the default of ERRAND_CONCURRENCY: as many runs as fit into the memory, at least 2 so that a person never waits for an
// automatic review, at most 4 because more is a decision about money that somebody should take.
func slots(memory int64) int {
	return max(2, min(4, int(memory/perRun)))
}

// memory returns the bytes this process may use: those of the machine or, in a container, of its cgroup, whichever is less.
// 0 means unknown.
func memory(read readFunc) int64 {
	total := memTotal(read)
	data, err := read("/sys/fs/cgroup/memory.max")
	if err != nil {
		return total
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil { // "max": no limit
		return total
	}
	if total == 0 {
		return limit
	}
	return min(total, limit)
}

// memTotal reads the first figure of /proc/meminfo: `MemTotal:       24683520 kB`.
func memTotal(read readFunc) int64 {
	data, err := read("/proc/meminfo")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 2 || f[0] != "MemTotal:" {
			continue
		}
		kb, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return 0
		}
		return kb << 10
	}
	return 0
}
