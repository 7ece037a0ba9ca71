package keeper

import (
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A tool without a sandbox is a process of the keeper's user, and can kill it. What the run had started is then given to the next child
// subreaper above: the worker, which has children of its own. Two things tell the run's from those:
//
//   - All that is born in a run has a mark that cannot be taken off: its hard limit of file locks, a limit that no kernel since 2.4.25
//     enforces. It is inherited, whatever a program does to its environment, session or parent, and only a privileged process may raise it.
//   - As long as a run's keeper lives, everything of the run is below it. So a marked child of the worker's own is a keeper or has lost it.

// keepers are the live keepers that this process has started, by their pids. Children are the whole process's, and so are they.
var keepers sync.Map

// adopt makes this process the one that is given the orphans of its keepers, and those of all its other children.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a child subreaper: %w", err)
	}
	return nil
}

// birthMark is the limit of what this process's runs start, or less, if a tool has lowered it; 0 where there is no room for one below our own.
// It grows with our process ID, so that what a worker started by this one has left, in tests for one, is not taken for ours.
func birthMark() uint64 {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_LOCKS, &own) != nil || own.Max == 0 {
		return 0
	}
	return min(own.Max-1, 1<<30+uint64(os.Getpid())) //nolint:gosec // a process ID is positive
}

// markBirth marks what this process starts from now on.
func markBirth(mark uint64) {
	_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: mark, Max: mark})
}

// adopted lists our children that were born in a run and have lost their keeper; the dead that wait for their burial are among them.
func adopted() (pids []int) {
	mark := birthMark()
	if mark == 0 {
		return nil // nothing can be marked here, so nothing tells ours from theirs
	}
	for _, pid := range children(os.Getpid()) {
		var its unix.Rlimit
		if _, keeper := keepers.Load(pid); !keeper && unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &its) == nil && its.Max <= mark {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killAdopted kills and reaps what was adopted, with all that is below it, and returns how many processes were killed. When it returns,
// nothing that lost its keeper before is left, unless it does not die within sweepLimit.
func killAdopted() int {
	killed := map[int]bool{}
	for stop := time.Now().Add(sweepLimit); time.Now().Before(stop); {
		found := adopted()
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			below, _ := descendants(pid)
			for _, p := range append(below, pid) {
				if !over(p) {
					killed[p] = true
				}
			}
			killAll(append(below, pid))
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // killed, not yet dead: wait4 cannot wait for "any of these, but not for ever"
	}
	return len(killed)
}

// zombies are those among our children of whom we do not know whether somebody here waits for them: an orphan of a git that was
// killed, or a child of os/exec's that has only just ended. Not safe for concurrent use.
type zombies map[int]zombie

type zombie struct {
	start string
	since time.Time
	looks int
}

// reap collects those that nobody has waited for in a minute and three looks: os/exec waits from the start. Otherwise they would fill the
// table of processes; without us they would have been init's.
func (s zombies) reap(now time.Time) {
	seen := zombies{}
	for _, pid := range children(os.Getpid()) {
		if _, keeper := keepers.Load(pid); keeper || !over(pid) {
			continue
		}
		_, start, err := processState(pid)
		if err != nil {
			continue
		}
		z := s[pid]
		if z.start != start {
			z = zombie{start: start, since: now}
		}
		if z.looks++; z.looks > 3 && now.Sub(z.since) > time.Minute {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			continue
		}
		seen[pid] = z
	}
	clear(s)
	maps.Copy(s, seen)
}

// stoppedProcess reports whether a process does nothing until it is sent SIGCONT.
func stoppedProcess(pid int) bool {
	state, _, err := processState(pid)
	return err == nil && state == "T"
}
