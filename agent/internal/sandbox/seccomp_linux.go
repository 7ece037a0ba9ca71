package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// x32 is the first system call number of x86-64's second ABI, which numbers each call differently.
const x32 = 0x40000000

// Offsets in the kernel's struct seccomp_data. The lower half of a flag, which is enough, comes first on both
// architectures.
const (
	callNumber   = 0
	callArch     = 4
	callArgument = 16 // the first one
)

// forbidden lists system calls by which a process can reach into another process of its user, such as a tool into its
// CLI, or into what the user shares with the machine, such as the keys of the worker's session.
var forbidden = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PERF_EVENT_OPEN, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF,
	unix.SYS_USERFAULTFD, unix.SYS_SETNS,
	// Calls on a ring pass no filter.
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

// filter returns the seccomp filter of a sandbox. The forbidden calls fail, and so do those that would create a user
// namespace, in which a process has all capabilities and far more of the kernel to attack. A program for another ABI,
// which numbers the calls differently, is killed.
func filter() ([]bpf.Instruction, error) {
	arch, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return nil, errors.ErrUnsupported
	}
	refuse := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)} //nolint:gosec // below 4096
	}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: callArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: callNumber, Size: 4},
	}
	if arch == unix.AUDIT_ARCH_X86_64 {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32, SkipFalse: 1}, refuse(unix.ENOSYS))
	}
	for _, call := range forbidden {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipFalse: 1}, refuse(unix.EPERM))
	}
	// The flags of clone3 are in memory, where a filter cannot look. Without it a C library falls back on clone.
	program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE3, SkipFalse: 1}, refuse(unix.ENOSYS))
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		program = append(
			program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipFalse: 4},
			bpf.LoadAbsolute{Off: callArgument, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.CLONE_NEWUSER, SkipFalse: 1},
			refuse(unix.EPERM), allow,
		)
	}
	return append(program, allow), nil
}

// openFilter returns the filter in a file that bubblewrap can read. Close it once bubblewrap has started.
func openFilter() (*os.File, error) {
	instructions, err := filter()
	if err != nil {
		return nil, fmt.Errorf("make the sandbox's filter for %s: %w", runtime.GOARCH, err)
	}
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		return nil, fmt.Errorf("assemble the sandbox's filter: %w", err)
	}
	var program bytes.Buffer
	for _, i := range raw {
		_ = binary.Write(&program, binary.NativeEndian, i) // struct sock_filter; a buffer takes everything
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("write the sandbox's filter: %w", err)
	}
	_, err = w.Write(program.Bytes()) // far less than a pipe holds
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("write the sandbox's filter: %w", err), r.Close())
	}
	return r, nil
}
