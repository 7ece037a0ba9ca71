package config

import "testing"

func TestDefaultConcurrency(t *testing.T) {
	t.Parallel()
	const meminfo, cgroup = "/proc/meminfo", "/sys/fs/cgroup/memory.max"
	for name, tc := range map[string]struct {
		files map[string]string
		want  int
	}{
		"unknown":            {map[string]string{meminfo: ""}, 2},
		"unreadable":         {map[string]string{meminfo: "MemTotal: lots kB"}, 2},
		"small machine":      {map[string]string{meminfo: "MemTotal: 500000 kB"}, 2},
		"three fit":          {map[string]string{meminfo: "MemFree: 1 kB\nMemTotal: 800000 kB"}, 3},
		"large machine":      {map[string]string{meminfo: "MemTotal: 64000000 kB"}, 4},
		"small container":    {map[string]string{meminfo: "MemTotal: 64000000 kB", cgroup: "800000000\n"}, 3},
		"no limit":           {map[string]string{meminfo: "MemTotal: 64000000 kB", cgroup: "max\n"}, 4},
		"absurd limit":       {map[string]string{meminfo: "MemTotal: 800000 kB", cgroup: "9223372036854771712\n"}, 3},
		"container, no proc": {map[string]string{meminfo: "", cgroup: "800000000\n"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := slots(memory(machine(t, tc.files))); got != tc.want {
				t.Errorf("%d slots, want %d", got, tc.want)
			}
		})
	}
}
