package keeper

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ownProgram starts this binary again, even if its file was replaced by an upgrade.
const ownProgram = "/proc/self/exe"

// openProgram opens it for execution only: it may be a file that this user cannot read.
func openProgram() (*os.File, error) {
	fd, err := unix.Open(ownProgram, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: ownProgram, Err: err}
	}
	return os.NewFile(uintptr(fd), ownProgram), nil
}

// MakePrivate makes this process unreadable to other processes of its user. Their shells could otherwise read its environment and memory,
// including secrets, in /proc. It returns a notice for the operator if that does not help: root can always read.
func MakePrivate() (notice string, err error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return "", fmt.Errorf("make the process non-dumpable: %w", err)
	}
	if os.Geteuid() == 0 {
		return "running as root: outside a sandbox, tools of the agent are root too and can read this process's secrets; run as an ordinary user", nil
	}
	return "", nil
}

// Private reports whether MakePrivate was called and helps, and if not, what would help.
func Private() (ok bool, remedy string) {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	switch {
	case os.Geteuid() == 0:
		return false, "run as an ordinary user, or in a sandbox (ERRAND_SANDBOX)"
	case err != nil || dumpable != 0:
		return false, "call MakePrivate first thing in main"
	}
	return true, ""
}

// PrivateFromStart reports whether the kernel hides the processes of this program from their first instruction on, because their user may
// execute but not read it. MakePrivate takes effect some milliseconds later.
func PrivateFromStart() bool {
	return unix.Faccessat(unix.AT_FDCWD, ownProgram, unix.R_OK, unix.AT_EACCESS) != nil
}
