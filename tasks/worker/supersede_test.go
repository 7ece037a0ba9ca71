package worker

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// A superseded task ends, whether it waits or runs. All others continue.
func TestSupersede(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 10)
	f.agent.do = untilStopped(started)
	f.worker()
	running, waiting, newest := f.task("a", "old"), f.task("a", "old"), f.task("a", "new")
	for _, task := range []tasks.Task{running, waiting, newest} {
		task.Class = tasks.Review
		f.submit(task)
	}
	other := f.submit(f.task("b", "old"))
	<-started
	<-started
	old := func(t tasks.Task) bool { return t.Prompt == "old" }
	for range 2 { // a second call changes nothing
		if err := f.desk.Supersede(t.Context(), running.Thread, "Superseded by abc1234.", old); err != nil {
			t.Fatal(err)
		}
	}
	if e := f.ending(running.ID); e.Kind != tasks.Superseded || e.Sentence() != "Superseded by abc1234." ||
		e.Partial() != "half" {
		t.Errorf("what ran ended as %+v", e)
	}
	if e := f.ending(waiting.ID); e.Kind != tasks.Superseded || e.Result.Outcome != "" {
		t.Errorf("what waited ended as %+v", e)
	}
	<-started // the newest one of the thread
	for _, id := range []string{newest.ID, other} {
		if s, err := f.desk.Status(t.Context(), id); err != nil || s.State != "running" {
			t.Errorf("%s is %s, %v", id, s.State, err)
		}
	}
}

// A task with a later start time does not start, and shows that time.
func TestNotBefore(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	later := f.task("a", "later")
	later.NotBefore = time.Now().Add(time.Hour).Truncate(time.Microsecond)
	f.submit(later)
	soon := f.task("b", "soon")
	soon.NotBefore = time.Now().Add(50 * time.Millisecond)
	f.submit(soon)
	f.ending(soon.ID)
	if s, err := f.desk.Status(t.Context(), later.ID); err != nil || s.State != "waiting" ||
		!s.At.Equal(later.NotBefore) {
		t.Errorf("is %+v, %v", s, err)
	}
	s, err := f.desk.Status(t.Context(), soon.ID)
	if err != nil || s.Started.Before(soon.NotBefore.Truncate(time.Microsecond)) {
		t.Errorf("started at %s, not before %s: %v", s.Started, soon.NotBefore, err)
	}
}
