package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
)

// hold is a function for scripts: it takes that many megabytes and keeps them.
const hold = `hold() { x=$(head -c "$1"M /dev/zero | tr '\0' x); echo "has ${#x}"; sleep 1000; }; export -f hold; `

// A run whose processes together have too much memory should be ended completely, without affecting others, and with
// the reason.
func TestTooMuchMemory(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"one process":    hold + "hold 400",
		"many processes": hold + "for i in {1..8}; do setsid bash -c 'hold 50' & done; wait",
	} {
		tooMuch := func(t *testing.T, b *bench) {
			other := agenttest.Lead(t, `setsid sleep 1000 & echo up; read x; echo "still here"`)
			b.cfg.MaxMemory = 300 << 20
			res := b.run(t, t.Context(), Spec{
				Prompt: Message{Text: script}, Profile: Write, Limit: time.Minute,
			}, &host{})
			if res.Outcome != Failed || res.Error.Class != ClassMemory || res.Resources.Peak <= b.cfg.MaxMemory {
				t.Errorf("result %+v, %v", res, res.Error)
			}
			b.gone(t)
			_ = other.Stdin.Close()
			other.Expect(t, "still here")
			other.Ended(t)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tooMuch(t, newBench(t, "shell"))
		})
		t.Run(name+" in a sandbox", func(t *testing.T) {
			t.Parallel()
			inSandbox(t, "shell", tooMuch)
		})
	}
}

// The memory of a process that crashes does not get into the clone.
func TestNoCores(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	if s := b.script(t, t.Context(), "ulimit -c", 0); s.Output != "0" {
		t.Errorf("%+v", s)
	}
}

// Files in memory are bounded in a sandbox.
func TestSharedMemoryIsBounded(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, b *bench) {
		s := b.script(t, t.Context(),
			"head -c 600M /dev/zero >/dev/shm/x; stat -c %s /dev/shm/x; echo x >/dev/x; echo y >/dev/null", 0)
		if !strings.Contains(s.Output, "No space left on device") || !strings.Contains(s.Output, "536870912") ||
			!strings.Contains(s.Output, "/dev/x: Read-only") {
			t.Errorf("%+v", s)
		}
	})
}
