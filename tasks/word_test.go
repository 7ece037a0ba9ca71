package tasks

import (
	"testing"

	"github.com/errand-fleet/errand/agent"
)

// The class of an error is named if there is one.
func TestWordOfAnEnding(t *testing.T) {
	t.Parallel()
	for want, failed := range map[string]*agent.Error{"failed": nil, "failed (budget)": {Class: "budget"}} {
		if got := (Ending{Kind: Failed, Result: agent.Result{Error: failed}}).Word(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (Ending{Kind: Failed, Result: agent.Result{Error: &agent.Error{}}}).Word(); got != "failed" {
		t.Errorf("without a class: %q", got)
	}
}
