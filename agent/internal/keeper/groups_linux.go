package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
)

// Groups are control groups (version 2), one for each run: the kernel limits the run's memory and number of processes,
// divides the processors equally between runs, and kills all processes of a run at once. Without them, the keeper
// counts.
type Groups struct {
	dir string // which was delegated to the worker
}

const (
	// workerGroup is the child of a delegated group that the worker moves to, because a group with limits for its
	// children cannot have processes itself.
	workerGroup = "errand-worker"

	runGroup     = "errand-run-" // is followed by the worker's process ID, and a number that makes it unique
	workerWeight = "1000"        // of processor time, where a run has 100
)

// FindGroups moves this process into a child of its own group, if that was delegated to it, and removes what dead
// workers have left there. The error says why runs cannot have groups. It may be called again.
func FindGroups() (*Groups, error) { return findGroups("/sys/fs/cgroup") }

func findGroups(mount string) (*Groups, error) {
	var fs unix.Statfs_t
	if unix.Statfs(mount, &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil, errors.New("this machine has no control groups of version 2 alone")
	}
	list, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	_, path, _ := strings.Cut(strings.TrimSpace(string(list)), "0::")
	g := &Groups{dir: strings.TrimSuffix(filepath.Join(mount, path), "/"+workerGroup)}
	controllers, err := os.ReadFile(filepath.Join(g.dir, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("find the group of this process: %w", err)
	}
	if !g.delegated(g.dir == mount) {
		return nil, fmt.Errorf("%s was not delegated to this worker", g.dir)
	}
	enable := "+memory +pids"
	switch has := strings.Fields(string(controllers)); {
	case !slices.Contains(has, "memory") || !slices.Contains(has, "pids"):
		return nil, fmt.Errorf("%s has no controllers for memory and pids", g.dir)
	case slices.Contains(has, "cpu"):
		enable += " +cpu"
	}
	own := filepath.Join(g.dir, workerGroup)
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // as the kernel's
		return nil, fmt.Errorf("make a group: %w", err)
	}
	err = set(own, "cgroup.procs", strconv.Itoa(os.Getpid()))
	if err == nil {
		err = set(g.dir, "cgroup.subtree_control", enable)
	}
	if err != nil { // other processes are in the group, so it is not the worker's alone
		err = errors.Join(err, set(g.dir, "cgroup.procs", strconv.Itoa(os.Getpid())), os.Remove(own))
		return nil, fmt.Errorf("divide %s: %w", g.dir, err)
	}
	_ = set(own, "cpu.weight", workerWeight) // without the controller there is no such file
	g.removeStale()
	if err := g.try(); err != nil {
		return nil, err
	}
	return g, nil
}

// try starts a process in a group. A system call filter may forbid that (clone3) although groups can be changed.
func (g *Groups) try() error {
	one, err := g.open(Order{})
	if err != nil {
		return err
	}
	defer one.remove()
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", ":"}, Dir: "/", Env: []string{},
		SysProcAttr: &syscall.SysProcAttr{},
	}
	one.join(cmd.SysProcAttr)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start a process in a control group: %w", err)
	}
	return nil
}

// delegated reports whether this process may manage its group. To root every group looks so, and only a container has
// one that is root's alone: the root of its namespace, which unlike the machine's has events.
func (g *Groups) delegated(root bool) bool {
	if os.Geteuid() != 0 {
		return unix.Access(g.dir, unix.W_OK) == nil &&
			unix.Access(filepath.Join(g.dir, "cgroup.procs"), unix.W_OK) == nil
	}
	_, err := os.Stat(filepath.Join(g.dir, "cgroup.events"))
	return root && err == nil
}

// removeStale ends the runs of workers that are dead.
func (g *Groups) removeStale() {
	entries, _ := os.ReadDir(g.dir) // without a list there is nothing to remove
	for _, e := range entries {
		rest, run := strings.CutPrefix(e.Name(), runGroup)
		text, _, _ := strings.Cut(rest, "-")
		if pid, err := strconv.Atoi(text); run && err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			(&group{dir: filepath.Join(g.dir, e.Name())}).remove()
		}
	}
}

// group is the group of one run. A nil *group does nothing.
type group struct {
	dir string
	fd  *os.File
}

// open makes the group of a run. Memory may exceed the order's by an eighth, and processes by half, before the kernel
// acts: the keeper, which gives better reasons, comes first.
func (g *Groups) open(o Order) (*group, error) {
	if g == nil {
		return nil, nil
	}
	dir, err := os.MkdirTemp(g.dir, fmt.Sprintf("%s%d-*", runGroup, os.Getpid())) // other Groups have others
	if err != nil {
		return nil, fmt.Errorf("make the control group of a run: %w", err)
	}
	one := &group{dir: dir}
	if o.MaxMemory > 0 {
		err = set(one.dir, "memory.max", strconv.FormatInt(o.MaxMemory+o.MaxMemory/8, 10))
	}
	if o.MaxProcesses > 0 {
		err = errors.Join(err, set(one.dir, "pids.max", strconv.Itoa(o.MaxProcesses+o.MaxProcesses/2)))
	}
	if err == nil {
		one.fd, err = os.Open(one.dir)
	}
	if err != nil {
		one.remove()
		return nil, fmt.Errorf("make the control group of a run: %w", err)
	}
	return one, nil
}

// join makes a command start in the group.
func (g *group) join(attributes *syscall.SysProcAttr) {
	if g != nil {
		attributes.UseCgroupFD, attributes.CgroupFD = true, int(g.fd.Fd())
	}
}

// outOfMemory returns how often the group had no memory left below its own limit. The kernel kills a process each time.
func (g *group) outOfMemory() int64 {
	if g == nil {
		return 0
	}
	n, _ := supervise.Counter(filepath.Join(g.dir, "memory.events"), "oom") // none if the file cannot be read
	return n
}

// remove kills what is left in the group and removes it. A process that the kernel cannot kill yet keeps it.
func (g *group) remove() {
	if g == nil {
		return
	}
	if g.fd != nil {
		_ = g.fd.Close()
	}
	_ = set(g.dir, "cgroup.kill", "1")                                        // since 5.14; before, the sweep does it
	for stop := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) { //nolint:forbidigo // nothing reports it
		if err := os.Remove(g.dir); !errors.Is(err, unix.EBUSY) || time.Now().After(stop) {
			return
		}
	}
}

// set writes a value to a file of a group.
func set(dir, name, value string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(value), 0)
}
