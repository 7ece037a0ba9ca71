package runlog

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteOut makes the kernel begin to write what f has in memory to the disk. It does not wait for the disk unless
// the disk's queue is full. Errors are those of the disk, which Sync returns.
func startWriteOut(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _ = unix.SyncFileRange(int(fd), 0, 0, unix.SYNC_FILE_RANGE_WRITE) })
	}
}
