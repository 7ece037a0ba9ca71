package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
)

// A fork bomb, with a bound for the machine's sake: each process starts two more, in a new session, until
// there are too many.
const bomb = `bomb() { [ "$1" -gt 0 ] || exec sleep 1000; setsid bash -c "bomb $(($1 - 1))" & setsid bash -c "bomb $(($1 - 1))" & wait; }; export -f bomb; bomb 8`

// A run with too many processes should be ended completely, without affecting others, and with the reason.
func TestTooManyProcesses(t *testing.T) {
	t.Parallel()
	tooMany := func(t *testing.T, b *bench) {
		other := agenttest.Lead(t, `setsid sleep 1000 & echo up; read x; echo "still here"`)
		b.cfg.MaxProcesses = 100
		res := b.run(t, t.Context(), Spec{Prompt: Message{Text: bomb}, Profile: Write, Limit: time.Minute}, &host{})
		if res.Outcome != Failed || res.Error.Class != ClassProcesses ||
			!strings.Contains(res.Error.User, "more processes than a run may have") {
			t.Errorf("result %+v, %v", res, res.Error)
		}
		b.gone(t)
		_ = other.Stdin.Close()
		other.Expect(t, "still here")
		other.Ended(t)
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		tooMany(t, newBench(t, "shell"))
	})
	t.Run("bwrap", func(t *testing.T) {
		t.Parallel()
		inSandbox(t, "shell", tooMany)
	})
}

// A run with as many as it may have goes on, whatever others have.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	b := newBench(t, "shell")
	b.cfg.MaxProcesses = 100
	script := "for i in {1..50}; do sleep 1000 >/dev/null 2>&1 & done; read -t 2 -u 8 8<> <(:); echo done"
	if res := b.run(t, t.Context(), Spec{
		Prompt: Message{Text: script}, Profile: Write,
	}, &host{}); !strings.HasPrefix(res.Text, "done") {
		t.Errorf("result %+v, %v", res, res.Error)
	}
}

// A run whose worker says nothing, but that it is there, goes on.
func TestBeatsAreHeard(t *testing.T) {
	t.Parallel()
	b := newBench(t, "shell")
	b.silentLimit = 2 * time.Second
	script := "read -t 5 -u 8 8<> <(:); echo done"
	if res := b.run(t, t.Context(), Spec{
		Prompt: Message{Text: script}, Profile: Write,
	}, &host{}); !strings.HasPrefix(res.Text, "done") {
		t.Errorf("result %+v, %v", res, res.Error)
	}
}
