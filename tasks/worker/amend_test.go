package worker

import (
	"errors"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/google/go-cmp/cmp"
)

func (f *fleet) amend(t tasks.Task, edit string, want desk.Amendment) {
	f.Helper()
	got, err := f.desk.Amend(f.Context(), t, desk.Edit{Key: edit})
	if err != nil || got != want {
		f.Errorf("amended as %d, %v; want %d", got, err, want)
	}
}

// A waiting task runs with its last change, in its original place.
func TestAmendWaiting(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limit = 0
	task := f.task("a", "paint it red")
	f.submit(task)
	task.Prompt, task.Options.Model = "paint it blue", "opus"
	f.amend(task, "2", desk.Replaced)
	f.amend(task, "2", desk.Replaced)
	old := task
	old.Prompt = "paint it green"
	f.amend(old, "1", desk.Outdated)
	if thread, err := f.desk.Thread(t.Context(), task.Thread); err != nil || thread.Options.Model != "opus" {
		t.Errorf("thread: %+v, %v", thread, err)
	}
	bad := task
	bad.Options.Model = "no model/"
	if _, err := f.desk.Amend(t.Context(), bad, desk.Edit{Key: "2"}); err == nil {
		t.Error("held to no policy")
	}
	unknown := f.task("b", "x")
	if _, err := f.desk.Amend(t.Context(), unknown, desk.Edit{Key: "1"}); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	f.worker()
	f.ending(task.ID)
	runs := f.agent.specs()
	if len(runs) != 1 || runs[0].Prompt.Text != "paint it blue" || runs[0].Model != "opus" {
		t.Errorf("runs: %+v", runs)
	}
	f.amend(task, "3", desk.TooLate)
}

// A change to a running task reaches the live run before later messages.
func TestAmendRunning(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	runs := f.converses()
	f.worker()
	task := f.task("a", "paint it red")
	f.submit(task)
	run := <-runs
	changed := task
	changed.Prompt, changed.Repo = "paint it blue", "elsewhere/else"
	for range 2 { // the event is delivered twice
		f.amend(changed, "1700000001.000100", desk.Corrected)
	}
	f.amend(task, "1700000001.000099", desk.Outdated)
	m := run.next()
	if want := "I have edited my message. It now reads:\n\npaint it blue"; m.Text != want {
		t.Errorf("the agent got %q", m.Text)
	}
	run.take(m)
	run.end <- answer("blue")
	e := f.ending(task.ID)
	want := []string{task.ID + "-edit-1700000001.000100"}
	if diff := cmp.Diff(want, e.Covers); diff != "" || !tasks.ValidID(want[0]) {
		t.Error(diff)
	}
}

// A withdrawn task that waits ends without a message; one that has started continues.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	task := f.task("a", "never mind")
	f.submit(task)
	done, err := f.desk.Withdraw(t.Context(), task.ID)
	if err != nil || !done {
		t.Errorf("withdrawn %t, %v", done, err)
	}
	if _, err := f.desk.Withdraw(t.Context(), f.task("b", "x").ID); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	runs := f.converses()
	f.worker()
	if e := f.ending(task.ID); e.Kind != tasks.Withdrawn || strings.Contains(e.Sentence(), "failed") {
		t.Errorf("ended as %+v", e)
	}
	other := f.task("a", "go on")
	f.submit(other)
	run := <-runs
	if done, err := f.desk.Withdraw(t.Context(), other.ID); err != nil || done {
		t.Errorf("withdrawn %t, %v", done, err)
	}
	run.end <- answer("on")
	f.ending(other.ID)
}
