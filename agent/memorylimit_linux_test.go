package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hold is a function for scripts: it takes that many megabytes and keeps them.
const hold = `hold() { x=$(head -c "$1"M /dev/zero | tr '\0' x); echo "has ${#x}"; sleep 1000; }; export -f hold; `

func TestTooMuchMemory(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"many processes": hold + "for i in {1..8}; do setsid bash -c 'hold 50' & done; wait",
		"shared memory":  "e=/proc/$PPID/exe; for i in {1..4}; do AGENT_TEST_MODE=share $e & done; wait",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBoth(t, "shell", func(t *testing.T, b *bench) {
				b.cfg.MaxMemory = 300 << 20
				if res := tooMuch(t, b, script, ClassMemory); res.Resources.Peak <= b.cfg.MaxMemory {
					t.Errorf("result %+v", res)
				}
			})
		})
	}
}

// Memory that several processes share counts once.
func TestSharedMemoryCountsOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "shell")
	b.cfg.MaxMemory = 300 << 20
	file := filepath.Join("/dev/shm", unique("shared"))
	t.Cleanup(func() { _ = os.Remove(file) })
	script := "e=/proc/$PPID/exe; for i in {1..4}; do AGENT_TEST_SHARED=" + file +
		" AGENT_TEST_MODE=share $e >/dev/null 2>&1 & done; read -t 3 -u 8 8<> <(:); echo done"
	if res := b.run(t, t.Context(), Spec{
		Prompt: Message{Text: script}, Profile: Write, Limit: time.Minute,
	}, &host{}); !strings.HasPrefix(res.Text, "done") || res.Resources.Peak < sharedSize {
		t.Errorf("result %+v, %v", res, res.Error)
	}
}

// System V segments that are attached to no process count in a sandbox, and end with it.
func TestSegments(t *testing.T) {
	t.Parallel()
	inSandbox(t, "shell", func(t *testing.T, b *bench) {
		b.cfg.MaxMemory = 300 << 20
		script := "e=/proc/$PPID/exe; for i in {1..4}; do AGENT_TEST_MODE=segment $e; done; sleep 1000"
		res := b.run(t, t.Context(), Spec{Prompt: Message{Text: script}, Profile: Write, Limit: time.Minute}, &host{})
		if res.Outcome != Failed || res.Error.Class != ClassMemory {
			t.Errorf("result %+v, %v", res, res.Error)
		}
		if all, err := os.ReadFile("/proc/sysvipc/shm"); strings.Contains(string(all), strconv.Itoa(sharedSize)) {
			t.Errorf("left behind: %s, %v", all, err)
		}
	})
}

// sharedSize is what shareMain and segmentMain take, in bytes: no other segment is as large.
const sharedSize = 25999 * 4096

// shareMain fills memory that can be shared: that of a file, or none.
func shareMain() int {
	how, fd := unix.MAP_SHARED|unix.MAP_ANONYMOUS, -1
	if path := os.Getenv("AGENT_TEST_SHARED"); path != "" {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil || f.Truncate(sharedSize) != nil {
			return 1
		}
		how, fd = unix.MAP_SHARED, int(f.Fd())
	}
	memory, err := unix.Mmap(fd, 0, sharedSize, unix.PROT_READ|unix.PROT_WRITE, how)
	if err != nil {
		return 1
	}
	fill(memory)
	_ = unix.Pause()
	return 0
}

// segmentMain leaves a segment behind that is attached to no process.
func segmentMain() int {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, sharedSize, unix.IPC_CREAT|0o600)
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

// Files in memory are bounded in a sandbox, and the memory of a process that crashes does not get into the clone.
func TestSharedMemoryIsBounded(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, b *bench) {
		s := b.script(t, t.Context(),
			"ulimit -Hc; head -c 600M /dev/zero >/dev/shm/x; stat -c %s /dev/shm/x; echo x >/dev/x; echo y >/dev/null", 0)
		if !strings.HasPrefix(s.Output, "0\n") || !strings.Contains(s.Output, "No space left on device") || !strings.Contains(s.Output, "536870912") ||
			!strings.Contains(s.Output, "/dev/x: Read-only") {
			t.Errorf("%+v", s)
		}
	})
}
