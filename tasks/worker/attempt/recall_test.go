package attempt

import (
	"context"
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// recalling is a source that counts how often it is asked for a final message.
type recalling struct {
	*speaker

	asked int
}

func (s *recalling) Capabilities() tasks.Capabilities {
	return tasks.Capabilities{Final: func(context.Context, tasks.Task, time.Time) (*tasks.Ending, error) {
		s.asked++
		return nil, nil
	}}
}

// A thread is searched for a final message only if its task may have started before.
func TestRecallOnlyWhatMayHaveStarted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle()
	f.put("errand:epoch", "since", "0") // the data is older than the tasks, so that none is in doubt
	f.put("errand:epoch", "process", "")
	for field, want := range map[string]int{"unknown": 0, "attempt": 1, "crashes": 1, "doubt": 1} {
		task := f.task(field, "x")
		f.put("errand:task:"+f.submit(task), field, "1")
		run, source := f.claimed(w, task.ID), &recalling{speaker: f.source}
		if err := w.recall(run, job{task: task, source: source}); err != nil || source.asked != want {
			t.Errorf("%s: asked %d times, %v", field, source.asked, err)
		}
		w.handOn(run)
	}
}
