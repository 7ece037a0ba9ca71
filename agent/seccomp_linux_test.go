package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

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
