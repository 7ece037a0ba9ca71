package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
)

// SweepRun kills every process that has lost its keeper or carries the run's marker, and returns how many it found. It
// is for a keeper that was itself killed: what the tools had started is then adopted by this process, or by a reaper in
// between, and keeps the environment it inherited.
func SweepRun(run string) int {
	adopted := killAdopted()
	killed := map[int]bool{}
	for range 100 { // a fork can slip through one scan, so scan until nothing is found
		found := Marked(run)
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
			killed[pid] = true
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // they are not our children: nothing reports their death
	}
	return adopted + len(killed)
}

// Marked lists the live processes that carry a run's marker. Processes of other users, and those that have made
// themselves unreadable, are not seen.
func Marked(run string) []int {
	return withValue(RunVariable, func(id string) bool { return id == run })
}

// WorkerMark identifies this process for SweepDeadWorkers: its boot, its process namespace, its process ID there and
// its start time. The process ID by itself is reused. The mark is empty if /proc is incomplete, and then nothing is
// swept.
func WorkerMark() string {
	namespace, ok := pidNamespace()
	start, err := startTime(os.Getpid())
	if !ok || err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", namespace, os.Getpid(), start)
}

// pidNamespace names this boot of the machine and this process namespace. A process ID is valid only within both.
func pidNamespace() (name string, ok bool) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", false
	}
	namespace, err := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	if err != nil {
		return "", false
	}
	return strings.TrimSpace(string(boot)) + "/" + strings.Trim(namespace, "pid:[]"), true
}

// startTime returns when a process started, in clock ticks since boot; empty if it is dead and not yet reaped.
func startTime(pid int) (string, error) {
	state, start, err := supervise.ProcessState(pid)
	if state == "Z" || state == "X" {
		return "", nil
	}
	return start, err
}

// isDead reports whether a mark belongs to a process of this namespace that is certainly dead.
func isDead(mark, namespace string) bool {
	rest, ours := strings.CutPrefix(mark, namespace+"/")
	number, start, _ := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(number)
	if !ours || err != nil || pid <= 0 || start == "" {
		return false
	}
	// /proc is not enough: mounted with hidepid, it hides processes that made themselves private, as workers do.
	if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
		return true
	}
	now, err := startTime(pid)
	return err == nil && now != start
}

// SweepDeadWorkers kills every process that carries the mark of a dead worker, until none is left, and returns how many
// it found.
func SweepDeadWorkers(ctx context.Context) (int, error) {
	namespace, ok := pidNamespace()
	if !ok {
		return 0, nil
	}
	killed := map[int]bool{}
	for stop := time.Now().Add(supervise.KillTimeout); ; {
		found := withValue(WorkerVariable, func(mark string) bool { return isDead(mark, namespace) })
		if len(found) == 0 {
			return len(killed), nil
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
			killed[pid] = true
		}
		if err := ctx.Err(); err != nil || time.Now().After(stop) {
			alive := fmt.Errorf("sweep: %d processes of dead workers do not die", len(found))
			return len(killed), errors.Join(alive, err)
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // they are not our children: nothing reports their death
	}
}
