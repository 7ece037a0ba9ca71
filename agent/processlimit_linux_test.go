package agent

import (
	"strings"
	"testing"
	"time"
)

// A fork bomb, with a bound for the machine's sake: each process starts two more, in a new session, until
// there are too many.
const bomb = `bomb() {
	[ "$1" -gt 0 ] || exec sleep 1000
	setsid bash -c "bomb $(($1 - 1))" & setsid bash -c "bomb $(($1 - 1))" & wait
}
export -f bomb; bomb 7`

func TestTooManyProcesses(t *testing.T) {
	t.Parallel()
	inBoth(t, "shell", func(t *testing.T, b *bench) {
		b.cfg.MaxProcesses = 100
		if res := tooMuch(t, b, bomb, ClassProcesses); res.Error != nil &&
			!strings.Contains(res.Error.User, "more processes than a run may have") {
			t.Error(res.Error)
		}
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
	script := "read -t 3 -u 8 8<> <(:); echo done"
	if res := b.run(t, t.Context(), Spec{
		Prompt: Message{Text: script}, Profile: Write,
	}, &host{}); !strings.HasPrefix(res.Text, "done") {
		t.Errorf("result %+v, %v", res, res.Error)
	}
}
