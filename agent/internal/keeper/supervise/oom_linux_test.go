package supervise

import (
	"os"
	"path/filepath"
	"testing"
)

// The kernel's two ways of counting, and the two places at which a container may find its own.
func TestOOMKills(t *testing.T) {
	t.Parallel()
	const v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
	const v2 = "low 0\nhigh 0\nmax 9\noom 4\noom_kill 2\noom_group_kill 1\n"
	for name, c := range map[string]struct {
		groups, file, text string
		want               int64
	}{
		"version 2":               {"0::/a/b\n", "a/b/memory.events", v2, 2},
		"version 2, in container": {"0::/../host/path\n", "memory.events", v2, 2},
		"version 1":               {"9:cpu:/x\n4:memory:/a\n0::/\n", "memory/a/memory.oom_control", v1, 3},
		"version 1, in container": {"4:memory:/docker/1\n", "memory/memory.oom_control", v1, 3},
		"hybrid":                  {"4:memory:/a\n0::/b\n", "memory/a/memory.oom_control", v1, 3},
		"no memory controller":    {"0::/a\n", "a/cgroup.events", "populated 1\n", 0},
		"no cgroups":              {"", "x", "", 0},
		"odd":                     {"odd\n0::/a\n", "a/memory.events", "oom_kill many\n", 0},
	} {
		root := t.TempDir()
		for path, text := range map[string]string{"proc/self/cgroup": c.groups, filepath.Join("sys", c.file): c.text} {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := oomKills(filepath.Join(root, "proc"), filepath.Join(root, "sys")); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
