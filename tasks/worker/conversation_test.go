package worker

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
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
