package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// The log of a task can be read from a machine that never had it: while it runs, when its worker is gone, and after
// another one with its own disk has continued.
func TestLogsOfOtherMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thinking := make(chan struct{}, 1)
	w.model.Answer("count",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]string{"command": "echo from-the-first"},
		}}},
		modelfake.Turn{Started: thinking, Hang: true})
	w.model.Answer("You were interrupted",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]string{"command": "echo from-the-second"},
		}}},
		modelfake.Turn{Text: "Counted."})
	base := w.frontDoor()
	want := func(id, when string, parts ...string) {
		t.Helper()
		for _, query := range []string{"", "?raw=1"} {
			log := w.get(base + "/api/tasks/" + id + "/log" + query)
			for _, part := range parts {
				part, without := strings.CutPrefix(part, "!")
				if strings.Contains(log, part) == without {
					t.Errorf("%s, %q: %q is missing, or there, in\n%.3000s", when, query, part, log)
				}
			}
		}
	}
	state := t.TempDir()
	w.env["ERRAND_STATE_DIR"] = filepath.Join(state, "first")
	first := w.process()
	root := w.mention("count", "")
	<-thinking
	id := w.taskID(root)
	want(id, "while it runs", "from-the-first")
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	want(id, "when its worker has gone", "from-the-first")

	w.env["ERRAND_STATE_DIR"] = filepath.Join(state, "second")
	second := w.process()
	w.answers(root, 1)
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = second.Wait()
	want(id, "when all have gone", "from-the-first", "from-the-second")
}
