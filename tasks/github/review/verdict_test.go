package review

import (
	"testing"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/settings"
)

// A commit whose review was not made never looks reviewed.
func TestStatusOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e     tasks.Ending
		state string
	}{
		{tasks.Ending{Kind: tasks.Failed, Reason: "No."}, hub.StatusError},
		{tasks.Ending{Kind: tasks.Cancelled, Reason: "Stopped by ann."}, hub.StatusError},
		{tasks.Ending{Kind: tasks.Refused, Reason: settings.Reason + "skip pull requests of ann."}, ""},
		{tasks.Ending{Kind: tasks.Superseded, Reason: "Superseded by 1234567."}, ""},
		{tasks.Ending{Kind: tasks.Superseded, Reason: "Superseded by abcdef0 onto dev."}, hub.StatusPending},
		{tasks.Ending{Kind: tasks.Answered}, ""},
	} {
		if got := statusOf(c.e, "abcdef0123"); got != c.state {
			t.Errorf("%s %q is shown as %q, want %q", c.e.Kind, c.e.Reason, got, c.state)
		}
	}
}
