package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ownMark is this process's mark; empty where /proc does not tell, and then nothing is swept.
func ownMark() string {
	place, ok := here()
	start, err := startTime(os.Getpid())
	if !ok || err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", place, os.Getpid(), start)
}

// here is where process IDs mean what they mean to us: this boot of the machine, this namespace.
func here() (place string, ok bool) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", false
	}
	space, err := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	if err != nil {
		return "", false
	}
	return strings.TrimSpace(string(boot)) + "/" + strings.Trim(space, "pid:[]"), true
}

// startTime is when a process started, in clock ticks since the boot, as /proc tells it; empty for one that is dead and not yet reaped.
func startTime(pid int) (string, error) {
	state, start, err := processState(pid)
	if state == "Z" || state == "X" {
		return "", nil
	}
	return start, err
}

// processState is how a process is, as one letter of /proc, and when it started.
func processState(pid int) (state, start string, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	// The second field, the program's name, may hold anything: fields are counted behind it. The start is the 22nd.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "", "", errors.New("read the start of a process: /proc has another shape")
	}
	return fields[0], fields[19], nil
}

// deadMark reports whether a mark is that of a process of this place that is dead for sure.
func deadMark(mark, place string) bool {
	rest, ours := strings.CutPrefix(mark, place+"/")
	number, start, _ := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(number)
	if !ours || err != nil || pid <= 0 || start == "" {
		return false
	}
	// Not by /proc alone: mounted with hidepid, it hides processes that made themselves private, as workers do.
	if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
		return true
	}
	now, err := startTime(pid)
	return err == nil && now != start
}

// sweepOrphans kills every process with the mark of a dead worker, until none is left, and returns how many it found.
func sweepOrphans(ctx context.Context) (int, error) {
	place, ok := here()
	if !ok {
		return 0, nil
	}
	killed := map[int]bool{}
	for stop := time.Now().Add(sweepLimit); ; {
		found := carrying(workerMarker, func(mark string) bool { return deadMark(mark, place) })
		if len(found) == 0 {
			return len(killed), nil
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
			killed[pid] = true
		}
		if err := ctx.Err(); err != nil || time.Now().After(stop) {
			return len(killed), errors.Join(fmt.Errorf("sweep: %d processes of dead workers do not die", len(found)), err)
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // they are not our children: nothing tells us when they are dead
	}
}
