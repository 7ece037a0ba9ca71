package attempt

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
)

// Tasks that waited for a set-up fail with it, and do not repeat it one after another. Later ones try again.
func TestFailuresOfSetUps(t *testing.T) {
	t.Parallel()
	var f failedSetUps
	failed := agent.NewError(agent.ClassWorkspace, "npm ci")
	begun := time.Now()
	f.note("one", failed)
	f.note("two", agent.NewError(agent.ClassStart, "no keeper"))
	f.note("three", nil)
	for id, want := range map[string]error{"one": failed, "two": nil, "three": nil, "four": nil} {
		if got := f.since(id, begun); got != want { //nolint:errorlint // that very error
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	if err := f.since("one", time.Now()); err != nil {
		t.Errorf("a later task fails with %v", err)
	}
}
