package keeper

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ownStat opens what tells a keeper the state of this process, also from inside a sandbox. It is nil without /proc.
func ownStat() *os.File {
	f, err := os.Open("/proc/self/stat")
	if err != nil {
		return nil
	}
	return f
}

// raisePriority gives the calling thread the highest priority that is not real time, if it may have it.
func raisePriority() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) }

// sleep lets the calling thread sleep. Unlike a timer of Go, this needs no other thread to wake it.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t, nil) // a signal only makes it shorter
}

func writeOnce(fd int, line []byte) { _, _ = unix.Write(fd, line) }
