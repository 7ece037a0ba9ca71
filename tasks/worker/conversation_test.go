package worker

import (
	"context"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/google/go-cmp/cmp"
)

// The next run of a thread gets the earlier conversation as text if the CLI has lost the session or never saved one.
func TestThreadIsRememberedInWords(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		r := answer("echo: " + s.Prompt.Text)
		r.Session.Data = nil
		return r, nil
	}
	f.worker()
	for _, prompt := range []string{"one", "two", "three"} {
		f.ending(f.submit(f.task("a", prompt)))
	}
	want := []agent.Turn{
		{Role: agent.User, Text: "one"},
		{Role: agent.Assistant, Text: "echo: one"},
		{Role: agent.User, Text: "two"},
		{Role: agent.Assistant, Text: "echo: two"},
	}
	if diff := cmp.Diff(want, f.agent.specs()[2].History); diff != "" {
		t.Error(diff)
	}
}

func TestRememberIsBounded(t *testing.T) {
	t.Parallel()
	var said []agent.Turn
	for range 30 {
		said = remember(said, agent.Turn{Role: agent.User, Text: strings.Repeat("ä", maxTurn)}, agent.Turn{Role: agent.Assistant, Text: "x"}, agent.Turn{Role: agent.Assistant, Text: "x"}, agent.Turn{Role: agent.Assistant})
	}
	size := 0
	for i, turn := range said {
		size += len(turn.Text)
		if len(turn.Text) > maxTurn || i > 0 && turn.Role == said[i-1].Role {
			t.Errorf("turn %d: %s with %d bytes", i, turn.Role, len(turn.Text))
		}
	}
	if size > maxSaid || size < maxSaid/2 || said[len(said)-1].Text != "x" {
		t.Errorf("%d turns with %d bytes", len(said), size)
	}
}
