//go:build cgroup2

package keeper

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These tests need a delegated control group, which scripts/groups gives them in a separate kernel.

func newGroups(t *testing.T) *Groups {
	t.Helper()
	g, err := FindGroups()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// start runs a script in the group of an order.
func (g *Groups) start(t *testing.T, o Order, script string) (*group, *exec.Cmd, *strings.Builder) {
	t.Helper()
	one, err := g.open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	said := &strings.Builder{}
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = said, said, &syscall.SysProcAttr{}
	one.join(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return one, cmd, said
}

// FindGroups may be called again, and runs start in groups beside the worker's.
func TestFindGroups(t *testing.T) {
	first, second := newGroups(t), newGroups(t)
	if first.dir != second.dir || strings.Contains(first.dir, workerGroup) {
		t.Errorf("%s and %s", first.dir, second.dir)
	}
	own, _ := os.ReadFile("/proc/self/cgroup")
	if !strings.HasSuffix(strings.TrimSpace(string(own)), "/"+workerGroup) {
		t.Errorf("the worker is in %s", own)
	}
	one, cmd, said := first.start(t, Order{MaxMemory: 800 << 20, MaxProcesses: 100},
		`cat /proc/self/cgroup; cd /sys/fs/cgroup$(cut -d : -f 3 /proc/self/cgroup); cat memory.max pids.max cpu.weight`)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if want := "/" + filepath.Base(one.dir) + "\n943718400\n150\n100\n"; !strings.HasSuffix(said.String(), want) {
		t.Errorf("it is in %s", said)
	}
	one.remove()
	if _, err := os.Stat(one.dir); err == nil {
		t.Error("the group is still there")
	}
}

// The kernel ends what needs too much memory, however fast it is, and refuses processes.
func TestGroupsLimitRuns(t *testing.T) {
	g := newGroups(t)
	one, cmd, _ := g.start(t, Order{MaxMemory: 64 << 20},
		"set -o pipefail; head -c 300M /dev/zero | tail -c 300M >/dev/null")
	if err := cmd.Wait(); err == nil || one.outOfMemory() == 0 {
		t.Errorf("it ended with %v, after %d kills", err, one.outOfMemory())
	}
	one.remove()
	two, cmd, said := g.start(t, Order{MaxProcesses: 20},
		"for i in {1..40}; do sleep 100 >/dev/null 2>&1 & done; echo no limit")
	defer two.remove()
	_ = cmd.Wait()
	if !strings.Contains(said.String(), "Resource temporarily unavailable") {
		t.Errorf("it said %q", said)
	}
}

// What a run leaves is killed with its group, and what a dead worker has left, with the next one's start.
func TestGroupsLeaveNothing(t *testing.T) {
	g := newGroups(t)
	const daemon = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!"
	one, cmd, said := g.start(t, Order{}, daemon)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	one.remove()
	gone(t, said.String())

	stale, cmd, said := g.start(t, Order{}, daemon)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	_ = stale.fd.Close()
	dead := filepath.Join(g.dir, runGroup+strconv.Itoa(cmd.Process.Pid)+"-1") // of a process that has ended
	if err := os.Rename(stale.dir, dead); err == nil {
		t.Fatal("groups can be renamed: simplify this test")
	}
	// The daemon moves instead.
	if err := os.Mkdir(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := set(dead, "cgroup.procs", strings.TrimSpace(said.String())); err != nil {
		t.Fatal(err)
	}
	newGroups(t)
	gone(t, said.String())
	if _, err := os.Stat(dead); err == nil {
		t.Error("the stale group is still there")
	}
	if _, err := os.Stat(stale.dir); err != nil {
		t.Error("a group of a living worker is gone")
	}
	stale.fd = nil
	stale.remove()
}

// gone fails if a process is alive. One that waits to be reaped is not.
func gone(t *testing.T, pid string) {
	t.Helper()
	state, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/stat")
	if err == nil && !strings.Contains(string(state), ") Z ") {
		t.Errorf("process %s is alive: %s", pid, state)
	}
}

// FindGroups reports groups that it cannot use, here because there may be no more of them.
func TestFullGroups(t *testing.T) {
	g := newGroups(t)
	if os.Geteuid() != 0 {
		return // only root may set the limit
	}
	if err := set(g.dir, "cgroup.max.descendants", "1"); err != nil { // the worker's
		t.Fatal(err)
	}
	_, err := FindGroups()
	if err := set(g.dir, "cgroup.max.descendants", "max"); err != nil {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(err.Error(), "make the control group") {
		t.Errorf("FindGroups returns %v", err)
	}
}

// A group that was not delegated, or has other processes, is left alone.
func TestForeignGroups(t *testing.T) {
	g := newGroups(t)
	if (&Groups{dir: filepath.Dir(g.dir)}).delegated(false) {
		t.Error("a group without a mark counts as delegated")
	}
	if _, err := findGroups(t.TempDir()); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a directory that is no group: %v", err)
	}
}
