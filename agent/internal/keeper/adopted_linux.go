package keeper

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
)

func children(pid int) []int { return supervise.Children(pid) }

// Held returns how many bytes of disk the files take that processes of the run hold open after their removal, without
// files in memory, and how many descriptors wait in the run's sockets to be received. What those hold cannot be found
// out.
func (p *Process) Held() (unlinked int64, waiting int) {
	type file struct{ device, inode uint64 }
	seen := map[file]bool{}
	pids, _ := supervise.Descendants(p.keeper.Pid)
	for _, pid := range pids {
		open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)) // a process may have gone
		for _, fd := range open {
			name := fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())
			var s unix.Stat_t
			if unix.Stat(name, &s) != nil || seen[file{s.Dev, s.Ino}] {
				continue
			}
			switch kind := s.Mode & unix.S_IFMT; {
			case kind == unix.S_IFSOCK:
				waiting += waitingIn(pid, fd.Name())
			case kind != unix.S_IFREG || s.Nlink > 0:
				continue
			}
			seen[file{s.Dev, s.Ino}] = true
			var fs unix.Statfs_t
			if s.Nlink == 0 && unix.Statfs(name, &fs) == nil && fs.Type != unix.TMPFS_MAGIC {
				unlinked += s.Blocks * 512
			}
		}
	}
	return unlinked, waiting
}

// waitingIn returns the number of descriptors that wait in a socket of a process. The kernel tells since Linux 5.4.
func waitingIn(pid int, fd string) int {
	info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, fd))
	_, rest, _ := bytes.Cut(info, []byte("\nscm_fds:"))
	number, _, _ := bytes.Cut(rest, []byte("\n"))
	n, _ := strconv.Atoi(string(bytes.TrimSpace(number)))
	return n
}

// suspended reports whether a process does nothing until it gets SIGCONT.
func suspended(pid int) bool {
	state, _, err := supervise.ProcessState(pid)
	return err == nil && state == "T"
}

// withVariable lists the other processes whose environment this user can read and that have a matching variable,
// NAME=value.
func withVariable(match func(v []byte) bool) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // empty for a zombie
		if err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), match) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// withValue lists the processes that have a variable with a matching value.
func withValue(variable string, match func(value string) bool) []int {
	name := []byte(variable + "=")
	return withVariable(func(v []byte) bool {
		value, ok := bytes.CutPrefix(v, name)
		return ok && match(string(value))
	})
}

// WithEnvironment lists the processes that this user, and so a tool of the agent, can read, and that have one of the
// variables in their environment: "1 (tini)".
func WithEnvironment(variables []string) (holders []string) {
	for _, pid := range withVariable(func(v []byte) bool { return slices.Contains(variables, string(v)) }) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		holders = append(holders, fmt.Sprintf("%d (%s)", pid, bytes.TrimSpace(name)))
	}
	return holders
}

// A tool without a sandbox is a process of the keeper's user, and can kill it. What the run had started is then
// re-parented to the next child subreaper above, the worker, which has other children too. Two things distinguish the
// processes of a run:
//
//   - Each carries a mark that it cannot remove: its hard limit of file locks, which no kernel since 2.4.25 enforces.
//     Every child inherits the limit, and only a privileged process may raise it.
//   - While a run's keeper lives, the whole run is below it. So a marked child of the worker is a keeper or lost its
//     own.

// liveKeepers has the keepers that this process has started, by process ID. It is global because child processes are.
var liveKeepers sync.Map

// lockLimit returns the limit of file locks that marks the processes of this worker's runs, or a lower one if a tool
// has lowered it; 0 if there is no room below the worker's own limit. It grows with the process ID, so that processes
// left by a worker that this one started, in tests for example, are not mistaken for its own.
func lockLimit() uint64 {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_LOCKS, &own) != nil || own.Max == 0 {
		return 0
	}
	return min(own.Max-1, 1<<30+uint64(os.Getpid())) //nolint:gosec // a process ID is positive
}

// adopted lists the children of this process that were started in a run and have lost their keeper, including zombies.
func adopted() (pids []int) {
	limit := lockLimit()
	if limit == 0 {
		return nil // nothing could be marked
	}
	for _, pid := range children(os.Getpid()) {
		var its unix.Rlimit
		if _, keeper := liveKeepers.Load(pid); !keeper && unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &its) == nil &&
			its.Max <= limit {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killAdopted kills and reaps adopted processes and all that is below them, and returns how many it killed. When it
// returns, nothing that had lost its keeper before is left, unless it does not die within supervise.KillTimeout.
func killAdopted() int {
	killed := map[int]bool{}
	for stop := time.Now().Add(supervise.KillTimeout); time.Now().Before(stop); {
		found := adopted()
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			below, _ := supervise.Descendants(pid)
			for _, p := range append(below, pid) {
				if !supervise.Exited(p) {
					killed[p] = true
				}
			}
			supervise.KillAll(append(below, pid))
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // killed, not yet dead: wait4 has no timeout
	}
	return len(killed)
}

// zombies are dead children that nothing has waited for yet, by process ID: an orphan of a git that was killed, or a
// child of os/exec that has just ended.
var zombies struct {
	sync.Mutex
	seen map[int]zombie
}

type zombie struct {
	start string // of the process: its ID may be reused
	since time.Time
	looks int
}

// reapZombies reaps dead children that nothing has waited for in a minute and three calls: os/exec waits from the
// start. They would fill the process table; without a subreaper they would have been init's.
func reapZombies() {
	zombies.Lock()
	defer zombies.Unlock()
	now, seen := time.Now(), map[int]zombie{}
	for _, pid := range children(os.Getpid()) {
		if _, keeper := liveKeepers.Load(pid); keeper || !supervise.Exited(pid) {
			continue
		}
		_, start, err := supervise.ProcessState(pid)
		if err != nil {
			continue
		}
		z := zombies.seen[pid]
		if z.start != start {
			z = zombie{start: start, since: now}
		}
		if z.looks++; z.looks > 3 && now.Sub(z.since) > time.Minute {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			continue
		}
		seen[pid] = z
	}
	zombies.seen = seen
}
