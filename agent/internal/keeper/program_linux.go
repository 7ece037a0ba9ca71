package keeper

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
)

// ownProgram is this program, even if its file was replaced by an upgrade.
const ownProgram = "/proc/self/exe"

// firstFD is the lowest descriptor of a program. A keeper's own descriptors are below it when it is executed.
const firstFD = 16

func openProgram(path string) (*os.File, error) {
	low, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(low) }()
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, firstFD)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// executable returns the path by which a child of this process executes a program.
func executable(program *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", program.Fd()) }

// overlaid makes a command see overlays. They are mounted in namespaces that only the command and its children share;
// util-linux makes those, because neither a Go program nor the child of a private worker can. at is the program's
// descriptor in the command. A command without a path is only tried.
func overlaid(cmd *exec.Cmd, at int, all []Overlay) error {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return fmt.Errorf("mount overlays: %w", err)
	}
	list, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("list the overlays: %w", err)
	}
	args := []string{
		"unshare", "--user", "--map-current-user", "--mount", "--keep-caps", "--", fmt.Sprintf("/proc/self/fd/%d", at),
		supervise.OverlayName, string(list),
	}
	if cmd.Path != "" {
		args = append(append(args, cmd.Path), cmd.Args[1:]...)
	}
	cmd.Path, cmd.Args = unshare, args
	return nil
}

// Readable names those programs, of this process and of its keepers, that their user can read. Of the others, the
// kernel hides the processes from their first instruction on; MakePrivate takes effect some milliseconds later.
func (p *Program) Readable() (names []string) {
	readable := func(path string) bool { return unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK, unix.AT_EACCESS) == nil }
	if readable(ownProgram) {
		names = append(names, "this program")
	}
	if readable(p.path()) {
		names = append(names, Name)
	}
	return names
}

// MakePrivate makes this process unreadable to other processes of its user. Their shells could otherwise read its
// environment and memory, including secrets, in /proc. It returns a notice for the operator if that does not help: root
// can always read.
func MakePrivate() (notice string, err error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return "", fmt.Errorf("make the process non-dumpable: %w", err)
	}
	if os.Geteuid() == 0 {
		return "running as root: outside a sandbox, tools of the agent are root too and can read this process's " +
			"secrets; run as an ordinary user", nil
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

// BecomeSubreaper makes this process adopt the orphans of its keepers, and those of all its other children.
func BecomeSubreaper() error { return supervise.BecomeSubreaper() }
