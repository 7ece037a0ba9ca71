package config

import (
	"path"
	"slices"
	"strings"
)

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
