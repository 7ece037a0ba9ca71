package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// share fills as many bytes of memory that can be shared: that of a file, or none.
func share(bytes string) int {
	size, err := strconv.Atoi(bytes)
	if err != nil {
		return 1
	}
	how, fd := unix.MAP_SHARED|unix.MAP_ANONYMOUS, -1
	if path := os.Getenv("AGENT_TEST_SHARED"); path != "" {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil || f.Truncate(int64(size)) != nil {
			return 1
		}
		how, fd = unix.MAP_SHARED, int(f.Fd())
	}
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, how)
	if err != nil {
		return 1
	}
	fill(memory)
	_, _ = os.Stdout.WriteString("filled\n")
	_ = unix.Pause()
	return 0
}

// segment leaves a segment of as many bytes behind that is attached to no process.
func segment(bytes string) int {
	size, err := strconv.Atoi(bytes)
	if err != nil {
		return 1
	}
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, size, unix.IPC_CREAT|0o600)
	if err != nil {
		return 1
	}
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return 1
	}
	fill(memory)
	return 0
}

func fill(memory []byte) {
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
}

// tryForbidden tries what the filter forbids, on the process that started it, and says what came of
// each.
func tryForbidden() int {
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
	cmd := exec.CommandContext(context.Background(), "/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	fmt.Println("clone", errors.Is(cmd.Run(), unix.EPERM))
	_, _, errno := unix.Syscall6(unix.SYS_CLONE3, 0, 0, 0, 0, 0, 0)
	fmt.Println("clone3", errno)
	return 0
}

// send sends a removed file to itself, and receives it at the end of its input.
func send() int {
	f, err := os.Create("big")
	if err != nil || os.Remove("big") != nil || syscall.Fallocate(int(f.Fd()), 0, 0, 1<<20) != nil {
		return 1
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil || unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(int(f.Fd())), nil, 0) != nil {
		return 1
	}
	_ = f.Close()
	_, _ = os.Stdout.WriteString("up\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if _, _, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), make([]byte, unix.CmsgSpace(4)), 0); err != nil {
		return 1
	}
	_, _ = os.Stdout.WriteString("received\n")
	_ = unix.Pause()
	return 0
}
