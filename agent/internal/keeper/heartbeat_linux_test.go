package keeper

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inSandbox returns a bubblewrap that hides the machine's processes.
func inSandbox(t *testing.T) Sandbox {
	t.Helper()
	path, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	filter := filepath.Join(t.TempDir(), "filter")
	allow := binary.NativeEndian.AppendUint64(nil, unix.BPF_RET|unix.SECCOMP_RET_ALLOW<<32)
	if err := os.WriteFile(filter, allow, 0o600); err != nil {
		t.Fatal(err)
	}
	return Sandbox{
		Args: []string{
			path, "--unshare-user", "--unshare-pid", "--as-pid-1", "--ro-bind", "/", "/", "--proc", "/proc",
			"--dev", "/dev", "--",
		},
		Seccomp: func() (*os.File, error) { return os.Open(filter) },
	}
}

// A worker that works keeps its runs although its heartbeats are late, also those in a sandbox, and not for ever.
func TestLateHeartbeats(t *testing.T) {
	t.Parallel()
	const limit = 500 * time.Millisecond
	for name, where := range map[string]Sandbox{"sandbox": inSandbox(t), "no sandbox": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			p, err := new(Program).Start(t.Context(), Order{
				Path: "/bin/sh", Args: []string{"sh", "-c", "echo up; exec sleep 1000"}, Dir: "/",
				RunDir: t.TempDir() + "/run", WorkerTimeout: limit, OrphanGrace: time.Second,
			}, where)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Term(0)
			if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); line != "up\n" {
				t.Fatal(line, err)
			}
			p.controlMu.Lock() // so that no heartbeat is sent
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _ = io.Copy(io.Discard, p.Stdout) // until all are dead
			}()
			workUntil(over)
			p.controlMu.Unlock()
			<-p.done
			const least = 10 * limit // supervise.starvedLimits
			if took := time.Since(started); p.Exit.Silence == 0 || took < least {
				t.Errorf("ended after %s, silent for %s", took, p.Exit.Silence)
			}
		})
	}
}

// workUntil uses some of a processor.
func workUntil(over <-chan struct{}) {
	for done := 0; ; {
		select {
		case <-over:
			return
		case <-time.After(5 * time.Millisecond):
		}
		for range 1 << 21 {
			done++
		}
	}
}
