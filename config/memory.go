package config

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// perRun is what a run is reckoned with before it starts, too: the CLI needs 230 MB while it streams and 323 MB at its peak (measured with
// CLI 2.1.329).
const perRun = 350 << 20

// slots is the default of ERRAND_CONCURRENCY: as many runs as fit into the memory, at least 2 so that a person never waits for an
// automatic review, at most 4 because more is a decision about money that somebody should take.
func slots(memory int64) int {
	return max(2, min(4, int(memory/perRun)))
}

// memory returns the bytes this process may use: those of the machine or of a control group it is in, such as that of its container,
// whichever is least. 0 means unknown.
func memory(read readFunc) int64 {
	total, ok := figure(read, "/proc/meminfo", "MemTotal:")
	if !ok {
		total = math.MaxInt64
	}
	for _, g := range groups(read) {
		if limit, ok := number(read, g.limit); ok {
			total = min(total, limit)
		}
	}
	if total == math.MaxInt64 {
		return 0
	}
	return total
}

// MemoryAvailable returns the bytes that can be taken into use now before the machine, or a control group this process is in, has no
// more; math.MaxInt64 when nothing tells. It may be called from any goroutine and takes a fraction of a millisecond.
func MemoryAvailable() int64 { return available(os.ReadFile) }

func available(read readFunc) int64 {
	left, ok := figure(read, "/proc/meminfo", "MemAvailable:")
	if !ok {
		left = math.MaxInt64
	}
	for _, g := range groups(read) {
		limit, limited := number(read, g.limit)
		used, known := number(read, g.usage)
		if !limited || !known {
			continue
		}
		// Files that nobody has used for a while are counted, but give way before anything runs out.
		idle, _ := figure(read, g.stat, g.idle)
		left = min(left, max(0, limit-used+idle))
	}
	return left
}

// figure reads one figure of a file with a name and a figure per line, as bytes: `MemTotal:       24683520 kB`.
func figure(read readFunc, file, name string) (int64, bool) {
	data, err := read(file)
	if err != nil {
		return 0, false
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		f := strings.Fields(lines.Text())
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

// number reads a file that is one number. "max", where there is no limit, is none.
func number(read readFunc, file string) (int64, bool) {
	data, err := read(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// group names the files of a control group that limits memory.
type group struct {
	limit, usage string
	stat, idle   string // the file of statistics, and its line for files that have not been used for a while
}

// groups are the control groups this process is in, inner before outer; each may set a limit of its own. A container usually shows
// its own group at the top, whatever /proc/self/cgroup calls it, so that is always among them.
func groups(read readFunc) []group {
	data, err := read("/proc/self/cgroup")
	if err != nil {
		data = []byte("0::/\n")
	}
	var all []group
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, name, ok := strings.Cut(rest, ":") // both empty but for the name in version 2
		version2 := controllers == ""
		if !ok || !version2 && !slices.Contains(strings.Split(controllers, ","), "memory") {
			continue
		}
		for name = path.Clean("/" + name); ; name = path.Dir(name) {
			if version2 {
				dir := path.Join("/sys/fs/cgroup", name)
				all = append(all, group{dir + "/memory.max", dir + "/memory.current", dir + "/memory.stat", "inactive_file"})
			} else {
				dir := path.Join("/sys/fs/cgroup/memory", name)
				all = append(all, group{dir + "/memory.limit_in_bytes", dir + "/memory.usage_in_bytes", dir + "/memory.stat", "total_inactive_file"})
			}
			if name == "/" {
				break
			}
		}
	}
	return all
}
