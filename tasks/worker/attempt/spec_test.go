package attempt

import (
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

// The tool servers that an operator configured get the run's IDs.
func TestSpecNamesThreadAndRepository(t *testing.T) {
	t.Parallel()
	s := new(Processor).spec(tasks.Task{ID: "1", Thread: "chat/1", Repo: "acme/api"}, setting{before: &resumeState{}})
	if s.Thread != "chat/1" || s.Repo != "acme/api" {
		t.Errorf("thread %q, repository %q", s.Thread, s.Repo)
	}
}
