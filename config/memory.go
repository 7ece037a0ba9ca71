package config

import (
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// perRun is the memory reserved for a run: the CLI needs 230 MB while it streams and 323 MB at its peak (measured with
// CLI 2.1.329).
const perRun = 350 << 20

// slots returns the default of ERRAND_CONCURRENCY: as many runs as fit into the memory; at least 2, so that people do
// not wait for automatic reviews; at most 4, because more should be a deliberate decision about cost.
func slots(memory int64) int {
	return max(2, min(4, int(memory/perRun)))
}

// runMemory returns the default of ERRAND_RUN_MEMORY_GB. A run must reach it before the kernel kills processes of the
// worker and of other runs, for example in the chart's container of 4 GiB.
func runMemory(memory int64) int {
	if memory == 0 {
		return 8
	}
	return int(max(1, min(8, memory/4*3>>30)))
}

// memory returns the bytes that this process may use: the least of the machine's memory and the limits of its control
// groups. 0 means unknown.
func memory(read readFunc) int64 {
	total := least(read, "MemTotal:", func(g group) (int64, bool) { return number(read, g.limit) })
	if total == math.MaxInt64 {
		return 0
	}
	return total
}

// MemoryAvailable returns the bytes that are free on the machine and in this process's control groups, or math.MaxInt64
// if unknown. It is safe for concurrent use and takes a fraction of a millisecond.
func MemoryAvailable() int64 { return available(os.ReadFile) }

func available(read readFunc) int64 {
	return least(read, "MemAvailable:", func(g group) (int64, bool) {
		limit, limited := number(read, g.limit)
		used, known := number(read, g.usage)
		idle, _ := figure(read, g.stat, g.idle) // the usage includes cached files, which the kernel can drop
		return max(0, limit-used+idle), limited && known
	})
}

// least returns the smallest value of a figure among the machine and the control groups that have it.
func least(read readFunc, machine string, of func(group) (int64, bool)) int64 {
	smallest, ok := figure(read, "/proc/meminfo", machine)
	if !ok {
		smallest = math.MaxInt64
	}
	for _, g := range groups(read) {
		if n, ok := of(g); ok {
			smallest = min(smallest, n)
		}
	}
	return smallest
}

// figure reads a named line like `MemTotal:       24683520 kB` of a file, in bytes.
func figure(read readFunc, file, name string) (int64, bool) {
	data, err := read(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != name {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if len(f) > 2 && f[2] == "kB" {
			n <<= 10
		}
		return n, err == nil
	}
	return 0, false
}

// number reads a file that contains one number. It fails for "max", which means no limit.
func number(read readFunc, file string) (int64, bool) {
	data, err := read(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// group has the files of a control group that limits memory.
type group struct {
	limit, usage string
	stat, idle   string // the file of statistics, and its line for inactive cached files
}

// groups returns the control groups of this process, inner before outer; each may have a limit. In a container the own
// group is usually mounted at the top, whatever /proc/self/cgroup says, so the top is always included.
func groups(read readFunc) []group {
	data, err := read("/proc/self/cgroup")
	if err != nil {
		data = []byte("0::/\n")
	}
	var all []group
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, name, ok := strings.Cut(rest, ":") // in version 2 only the name is set
		version2 := controllers == ""
		if !ok || !version2 && !slices.Contains(strings.Split(controllers, ","), "memory") {
			continue
		}
		for name = path.Clean("/" + name); ; name = path.Dir(name) {
			if dir := path.Join("/sys/fs/cgroup", name); version2 {
				all = append(all, group{
					dir + "/memory.max", dir + "/memory.current", dir + "/memory.stat", "inactive_file",
				})
			} else {
				dir = path.Join("/sys/fs/cgroup/memory", name)
				all = append(all, group{
					dir + "/memory.limit_in_bytes", dir + "/memory.usage_in_bytes", dir + "/memory.stat",
					"total_inactive_file",
				})
			}
			if name == "/" {
				break
			}
		}
	}
	return all
}
