//go:build cgroup2

package agent

import (
	"testing"
	"time"
)

// scripts/groups runs this test where runs have control groups.

// A run that takes memory faster than its keeper looks is ended with the same reason, with and without a sandbox, and
// the next one finds nothing of it.
func TestRunsInGroups(t *testing.T) {
	inBoth(t, "shell", func(t *testing.T, b *bench) {
		if b.keepers.Groups == nil {
			t.Fatal("runs have no groups")
		}
		b.cfg.MaxMemory, b.cfg.MaxProcesses = 200<<20, 500
		res := b.run(t, t.Context(),
			Spec{
				Prompt: Message{Text: "head -c 900M /dev/zero | tail -c 900M >/dev/null; sleep 1000"}, Profile: Write,
				Limit: time.Minute,
			}, &host{})
		if res.Outcome != Failed || res.Error.Class != ClassMemory {
			t.Errorf("result %+v, %v", res, res.Error)
		}
		b.gone(t)
		if s := b.script(t, t.Context(), "grep -c errand-run- /proc/self/cgroup", 0); s.Output != "1" {
			t.Errorf("the next one: %+v", s)
		}
	})
}
