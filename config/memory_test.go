package config

import (
	"math"
	"testing"
)

func TestDefaultConcurrency(t *testing.T) {
	t.Parallel()
	const meminfo, cgroup = "/proc/meminfo", "/sys/fs/cgroup/memory.max"
	for name, tc := range map[string]struct {
		files map[string]string
		want  int
	}{
		"unknown":         {map[string]string{meminfo: ""}, 2},
		"unreadable":      {map[string]string{meminfo: "MemTotal: lots kB"}, 2},
		"small machine":   {map[string]string{meminfo: "MemTotal: 500000 kB"}, 2},
		"three fit":       {map[string]string{meminfo: "MemFree: 1 kB\nMemTotal: 1150000 kB"}, 3},
		"large machine":   {map[string]string{meminfo: "MemTotal: 64000000 kB"}, 4},
		"small container": {map[string]string{meminfo: "MemTotal: 64000000 kB", cgroup: "1150000000\n"}, 3},
		"no limit":        {map[string]string{meminfo: "MemTotal: 64000000 kB", cgroup: "max\n"}, 4},
		"absurd limit":    {map[string]string{meminfo: "MemTotal: 1150000 kB", cgroup: "9223372036854771712\n"}, 3},
		"small service": {map[string]string{
			meminfo: "MemTotal: 64000000 kB", "/proc/self/cgroup": "0::/system.slice/errand.service\n",
			"/sys/fs/cgroup/system.slice/errand.service/memory.max": "1150000000\n",
		}, 3},
		"container, no proc": {map[string]string{meminfo: "", cgroup: "1150000000\n"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := slots(memory(machine(t, tc.files))); got != tc.want {
				t.Errorf("%d slots, want %d", got, tc.want)
			}
		})
	}
}

// The default limit of a run is below that of its container, as in the chart with 4 GiB.
func TestDefaultMemoryOfARun(t *testing.T) {
	t.Parallel()
	const meminfo, cgroup = "/proc/meminfo", "/sys/fs/cgroup/memory.max"
	for name, tc := range map[string]struct {
		files map[string]string
		set   string
		want  int
	}{
		"unknown":       {map[string]string{meminfo: ""}, "", 8},
		"large machine": {map[string]string{meminfo: "MemTotal: 64000000 kB"}, "", 8},
		"chart":         {map[string]string{meminfo: "MemTotal: 64000000 kB", cgroup: "4294967296\n"}, "", 3},
		"small":         {map[string]string{meminfo: "MemTotal: 500000 kB"}, "", 1},
		"set":           {map[string]string{meminfo: "MemTotal: 500000 kB"}, "12", 12},
		"no limit":      {map[string]string{meminfo: "MemTotal: 500000 kB"}, "0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			getenv := func(name string) string { return map[string]string{"ERRAND_RUN_MEMORY_GB": tc.set}[name] }
			c, _ := load(getenv, machine(t, tc.files), RoleStandalone)
			if got := c.Worker.MemoryGB; got != tc.want {
				t.Errorf("%d GiB, want %d", got, tc.want)
			}
		})
	}
}

func TestMemoryAvailable(t *testing.T) {
	t.Parallel()
	const meminfo, groups = "/proc/meminfo", "/proc/self/cgroup"
	machineHas := "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 5000 kB\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"unknown":    {map[string]string{meminfo: ""}, math.MaxInt64},
		"unreadable": {map[string]string{meminfo: "MemAvailable: lots kB"}, math.MaxInt64},
		"machine":    {map[string]string{meminfo: machineHas}, 5000 << 10},
		"no limit": {map[string]string{
			meminfo: machineHas, "/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory.current": "1000\n",
		}, 5000 << 10},
		"container": {map[string]string{
			meminfo: machineHas, groups: "0::/docker/abc\n", "/sys/fs/cgroup/memory.max": "2000000\n",
			"/sys/fs/cgroup/memory.current": "1500000\n",
			"/sys/fs/cgroup/memory.stat":    "anon 1000000\nfile 500000\ninactive_file 300000\n",
		}, 800_000},
		"over its limit": {map[string]string{
			meminfo: machineHas, "/sys/fs/cgroup/memory.max": "1000\n", "/sys/fs/cgroup/memory.current": "1500\n",
		}, 0},
		"slice around a service": {map[string]string{
			meminfo: machineHas, groups: "0::/a.slice/b.service\n",
			"/sys/fs/cgroup/a.slice/b.service/memory.max":     "3000000\n",
			"/sys/fs/cgroup/a.slice/b.service/memory.current": "1000000\n",
			"/sys/fs/cgroup/a.slice/memory.max":               "4000000\n",
			"/sys/fs/cgroup/a.slice/memory.current":           "3500000\n",
		}, 500_000},
		"version 1": {map[string]string{
			meminfo: machineHas, groups: "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n1:name=systemd:/x\n0::/\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000\n",
			"/sys/fs/cgroup/memory/memory.usage_in_bytes": "1500000\n",
			"/sys/fs/cgroup/memory/memory.stat":           "inactive_file 1\ntotal_inactive_file 400000\n",
		}, 900_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := available(machine(t, tc.files)); got != tc.want {
				t.Errorf("%d bytes, want %d", got, tc.want)
			}
		})
	}
	if got := MemoryAvailable(); got < 1<<20 {
		t.Errorf("this machine has %d bytes", got)
	}
}
