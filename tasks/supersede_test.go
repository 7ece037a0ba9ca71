package tasks

import (
	"testing"
	"time"
)

// What is pointless by now ends: unsaid where nothing had begun, stopped where it runs, and everything else of the thread goes on.
func TestSupersede(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 10)
	f.agent.do = untilStopped(started)
	f.worker()
	running, waiting, newest := f.task("a", "old"), f.task("a", "old"), f.task("a", "new")
	for _, task := range []Task{running, waiting, newest} {
		task.Class = Review
		f.submit(task)
	}
	other := f.submit(f.task("b", "old"))
	<-started
	<-started
	old := func(t Task) bool { return t.Prompt == "old" }
	for range 2 { // twice is as good as once
		if err := f.desk.Supersede(t.Context(), running.Thread, "Superseded by abc1234.", old); err != nil {
			t.Fatal(err)
		}
	}
	if e := f.ending(running.ID); e.Kind != Superseded || e.Sentence() != "Superseded by abc1234." || e.Partial() != "half" {
		t.Errorf("what ran ended as %+v", e)
	}
	if e := f.ending(waiting.ID); e.Kind != Withdrawn {
		t.Errorf("what waited ended as %+v", e)
	}
	<-started // the newest one of the thread
	for _, id := range []string{newest.ID, other} {
		if s, err := f.desk.Status(t.Context(), id); err != nil || s.State != "running" {
			t.Errorf("%s is %s, %v", id, s.State, err)
		}
	}
}

// One that was begun and waits again is not withdrawn: somebody has seen it begin.
func TestSupersedeWhatWaitsAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	asked := make(chan struct{}, 10)
	f.source.brief = func(Task) (Brief, error) {
		asked <- struct{}{}
		return Brief{}, &ErrLater{At: time.Now().Add(time.Hour), Why: "GitHub's rate limit"}
	}
	stop := f.worker()
	task := f.task("a", "x")
	f.submit(task)
	<-asked
	stop()
	if err := f.desk.Supersede(t.Context(), task.Thread, "Closed.", func(Task) bool { return true }); err != nil {
		t.Fatal(err)
	}
	f.worker()
	if e := f.ending(task.ID); e.Kind != Superseded || e.Reason != "Closed." {
		t.Errorf("ended as %+v", e)
	}
}

// A task that is not to start yet does not, and says since when it may.
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
	if s, err := f.desk.Status(t.Context(), later.ID); err != nil || s.State != "waiting" || !s.At.Equal(later.NotBefore) {
		t.Errorf("is %+v, %v", s, err)
	}
	s, err := f.desk.Status(t.Context(), soon.ID)
	if err != nil || s.Started.Before(soon.NotBefore.Truncate(time.Microsecond)) {
		t.Errorf("started at %s, not before %s: %v", s.Started, soon.NotBefore, err)
	}
}
