package supervise

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// memoryOf returns the bytes that processes have together: those that each has for itself, and what they share, once.
// Only the kernel knows which of them share what, and it takes long to tell. It is read only if the answer decides
// whether they exceed limit; below that, the largest share of one of them counts.
func memoryOf(pids []int, limit int64) int64 {
	var own, most, all int64
	shares := map[int]int64{}
	for _, pid := range pids {
		status, err := readFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		own += kilobytes(status, "\nRssAnon:") + kilobytes(status, "\nVmSwap:")
		share := kilobytes(status, "\nRssShmem:")
		most, all = max(most, share), all+share
		if share > 0 {
			shares[pid] = share
		}
	}
	if own+most > limit || own+all <= limit {
		return own + most
	}
	exact := int64(0)
	for pid, share := range shares {
		exact += proportional(pid, share)
	}
	return own + max(most, exact)
}

// proportional returns the bytes of a process's shared memory, each page divided by the number of processes that have
// it; and share if the kernel does not tell that about this process.
func proportional(pid int, share int64) int64 {
	rollup, err := readFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil || !bytes.Contains(rollup, []byte("\nPss_Shmem:")) {
		return share
	}
	return kilobytes(rollup, "\nPss_Shmem:")
}

// kilobytes reads a line such as "VmSwap:	     0 kB" of a file of /proc/<pid>, in bytes.
func kilobytes(status []byte, name string) int64 {
	_, line, _ := bytes.Cut(status, []byte(name))
	line, _, _ = bytes.Cut(line, []byte(" kB"))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	return n << 10
}

// ownSegments gives what this thread starts its own System V segments, which end with the last process that could
// use them, and reports whether it has them: in a sandbox, and elsewhere if this process may create namespaces.
func ownSegments() bool { return os.Getpid() == 1 || unix.Unshare(unix.CLONE_NEWIPC) == nil }

// detachedSegments returns the bytes of System V segments that no process has attached, so that they are in the memory
// of none.
func detachedSegments() (total int64) {
	list, err := readFile("/proc/sysvipc/shm")
	if err != nil {
		return 0
	}
	const attached, resident, swapped = 6, 14, 15 // columns, from 0
	for line := range bytes.Lines(list) {
		fields := bytes.Fields(line)
		if len(fields) <= swapped || string(fields[attached]) != "0" {
			continue
		}
		for _, column := range []int{resident, swapped} {
			n, _ := strconv.ParseInt(string(fields[column]), 10, 64)
			total += n
		}
	}
	return total
}
