package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hold is a function for scripts: it takes that many megabytes and keeps them.
const hold = `hold() { x=$(head -c "$1"M /dev/zero | tr '\0' x); echo "has ${#x}"; sleep 1000; }; export -f hold; `

func TestTooMuchMemory(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"many processes": hold + "for i in {1..8}; do setsid bash -c 'hold 50' & done; wait",
		"shared memory":  fmt.Sprintf("e=/proc/$PPID/exe; for i in {1..4}; do AGENT_TEST_MODE=share $e %d & done; wait", sharedSize),
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
	// Then they are looked at a few times.
	script := fmt.Sprintf("e=/proc/$PPID/exe; for i in {1..4}; do AGENT_TEST_SHARED=%s AGENT_TEST_MODE=share $e %d 2>&1 & done | "+
		"head -n 4 | sort -u; read -t 3 -u 8 8<> <(:); echo done", file, sharedSize)
	if res := b.run(t, t.Context(), Spec{
		Prompt: Message{Text: script}, Profile: Write, Limit: time.Minute,
	}, &host{}); !strings.HasPrefix(res.Text, "filled\ndone") || res.Resources.Peak < sharedSize {
		t.Errorf("result %+v, %v", res, res.Error)
	}
}

// System V segments that are attached to no process count in a sandbox, and end with it.
func TestSegments(t *testing.T) {
	t.Parallel()
	inSandbox(t, "shell", func(t *testing.T, b *bench) {
		b.cfg.MaxMemory = 300 << 20
		script := fmt.Sprintf("e=/proc/$PPID/exe; for i in {1..4}; do AGENT_TEST_MODE=segment $e %d; done; sleep 1000", sharedSize)
		res := b.run(t, t.Context(), Spec{Prompt: Message{Text: script}, Profile: Write, Limit: time.Minute}, &host{})
		if res.Outcome != Failed || res.Error.Class != ClassMemory {
			t.Errorf("result %+v, %v", res, res.Error)
		}
		if all, err := os.ReadFile("/proc/sysvipc/shm"); strings.Contains(string(all), strconv.Itoa(sharedSize)) {
			t.Errorf("left behind: %s, %v", all, err)
		}
	})
}

// sharedSize is what the fake CLI takes to share, and as a segment, in bytes: no other segment is as large.
const sharedSize = 25999 * 4096

// Files in memory are bounded in a sandbox, and the memory of a process that crashes does not get into the clone.
func TestSharedMemoryIsBounded(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, b *bench) {
		s := b.script(t, t.Context(),
			"ulimit -Hc; df -B1 --output=size /dev/shm; echo x >/dev/x; echo y >/dev/null", 0)
		if !strings.HasPrefix(s.Output, "0\n") || !strings.Contains(s.Output, "536870912") ||
			!strings.Contains(s.Output, "/dev/x: Read-only") {
			t.Errorf("%+v", s)
		}
	})
}
