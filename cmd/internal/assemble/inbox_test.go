package assemble

import (
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// The sender of an event has its answer while its own API hangs or fails, and the event becomes a task when that is
// over.
func TestEventsWaitForTheServiceThatSentThem(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t)
	hold := make(chan struct{})
	w.github.Fail("GET /user", githubfake.Failure{Hold: hold, Status: 502})
	if _, err := w.github.OpenPR(t.Context(), githubfake.PR{
		Repo: public, Head: "change", Files: map[string]string{"b.txt": "b"},
	}); err != nil {
		t.Fatal(err)
	}
	w.awaitTasks(0)
	close(hold)
	w.awaitTasks(1)
}

// awaitTasks waits until there are n tasks.
func (w *rightsWorld) awaitTasks(n int) (list []tasks.Status) {
	w.Helper()
	for {
		l, err := w.door.Desk.List(w.Context(), desk.Filter{})
		if err != nil {
			w.Fatal(err)
		}
		if list = l.Tasks; len(list) == n {
			return list
		}
	}
}
