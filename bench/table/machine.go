package table

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine describes the machine of the measurement. Unknown values are left out.
func Machine(ctx context.Context) string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := bytes.Cut(info, []byte("model name\t: ")); ok {
			model, _, _ := bytes.Cut(rest, []byte("\n"))
			parts[0] += " of " + string(model)
		}
	}
	var system unix.Utsname
	if unix.Uname(&system) == nil {
		release, _, _ := strings.Cut(unix.ByteSliceToString(system.Release[:]), "-")
		parts = append(parts, "Linux "+release)
	}
	parts = append(parts, runtime.Version())
	if node, err := exec.CommandContext(ctx, "node", "--version").Output(); err == nil {
		parts = append(parts, "Node "+strings.TrimSpace(string(node)))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		before, _, _ := strings.Cut(string(load), " ")
		parts = append(parts, "load "+before+" before")
	}
	return strings.Join(parts, ", ")
}
