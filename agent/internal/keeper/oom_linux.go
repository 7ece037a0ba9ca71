package keeper

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomKills returns how many processes of this process's memory cgroup the kernel has killed for lack of memory; 0 if that cannot be read. A
// signal does not say who sent it: if this number grew while a run lived, it was the kernel and not a tool.
func oomKills(proc, cgroups string) int64 {
	list, err := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(list)) {
		// hierarchy:controllers:path. Version 2 has one hierarchy, number 0 and without controllers; if both versions are mounted,
		// memory belongs to one of them, and the other has no such file.
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
			if n, ok := counter(filepath.Join(cgroups, dir, path, file), "oom_kill"); ok {
				return n
			}
		}
	}
	return 0
}

// counter reads one number from a file that has a name and a number per line.
func counter(path, name string) (int64, bool) {
	data, err := os.ReadFile(path)
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
