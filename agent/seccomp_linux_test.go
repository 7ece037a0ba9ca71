package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// forbiddenMain is a tool that tries what the filter forbids, on the process that started it, and says what came of
// each.
func forbiddenMain() int {
	victim := uintptr(os.Getppid())
	pidfd, err := unix.PidfdOpen(os.Getppid(), 0)
	fmt.Println("pidfd_open", err)
	for _, try := range []struct {
		name       string
		call       uintptr
		a, b, c, d uintptr
	}{
		{"ptrace", unix.SYS_PTRACE, unix.PTRACE_SEIZE, victim, 0, 0},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, victim, 0, 0, 0},
		{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, victim, 0, 0, 0},
		{"pidfd_getfd", unix.SYS_PIDFD_GETFD, uintptr(pidfd), 0, 0, 0},
		{"kcmp", unix.SYS_KCMP, victim, uintptr(os.Getpid()), 0, 0},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, 0, victim, 0, 0},
		{"keyctl", unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, 0, 0, 0},
		{"add_key", unix.SYS_ADD_KEY, 0, 0, 0, 0},
		{"request_key", unix.SYS_REQUEST_KEY, 0, 0, 0, 0},
		{"bpf", unix.SYS_BPF, 9999, 0, 0, 0}, // no command of its: EINVAL without the filter
		{"userfaultfd", unix.SYS_USERFAULTFD, 1, 0, 0, 0},
		{"setns", unix.SYS_SETNS, uintptr(pidfd), 0, 0, 0},
		{"unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0, 0},
		{"unshare of nothing", unix.SYS_UNSHARE, 0, 0, 0, 0},
	} {
		_, _, errno := unix.Syscall6(try.call, try.a, try.b, try.c, try.d, 0, 0)
		fmt.Println(try.name, errno)
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	fmt.Println("clone", errors.Is(cmd.Run(), unix.EPERM))
	_, _, errno := unix.Syscall6(unix.SYS_CLONE3, 0, 0, 0, 0, 0, 0)
	fmt.Println("clone3", errno)
	return 0
}

// foreignABI is a program for 32-bit x86 that exits with 42.
func foreignABI() []byte {
	const base = 0x08048000
	code := []byte{0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80} // exit(42)
	head := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	for _, v := range []any{
		uint16(2), uint16(3), uint32(1), uint32(base + 84), uint32(52), uint32(0), uint32(0),
		uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0), // ELF header
		// one segment
		uint32(1), uint32(0), uint32(base), uint32(base), uint32(84 + len(code)), uint32(84 + len(code)), uint32(5),
		uint32(0x1000),
	} {
		head, _ = binary.Append(head, binary.LittleEndian, v)
	}
	return append(head, code...)
}

// A tool should not reach the CLI's memory, the worker's keys or a new namespace through any ABI.
func TestSandboxFilter(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, _ *bench) {
		root := house(t)
		foreign := filepath.Join(root, "foreign")
		makeProgram(t, foreign, foreignABI())
		err := exec.Command(foreign).Run()
		exit, ran := errors.AsType[*exec.ExitError](err)
		known := runtime.GOARCH == "amd64" && ran && exit.ExitCode() == 42 // the kernel knows the other ABI
		out, err := runIn(t.Context(), root, "AGENT_TEST_MODE=forbidden "+filepath.Join(root, "cli")+"; "+
			foreign+"; echo foreign $?\n")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"pidfd_open <nil>", "ptrace operation not permitted", "process_vm_readv operation not permitted",
			"process_vm_writev operation not permitted", "pidfd_getfd operation not permitted",
			"kcmp operation not permitted", "perf_event_open operation not permitted", "keyctl operation not permitted",
			"add_key operation not permitted", "request_key operation not permitted", "bpf operation not permitted",
			"userfaultfd operation not permitted", "setns operation not permitted", "unshare operation not permitted",
			"unshare of nothing errno 0", "clone true", "clone3 function not implemented",
		}
		killed := strings.Contains(out, fmt.Sprint("foreign ", 128+int(unix.SIGSYS)))
		if !strings.HasPrefix(out, strings.Join(want, "\n")) || known && !killed {
			t.Errorf("got\n%s\nwant\n%s", out, strings.Join(want, "\n"))
		}
	})
}
