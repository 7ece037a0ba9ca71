package worker

import (
	"errors"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/google/go-cmp/cmp"
)

// A task with the plan option only plans; the next task of the thread carries the plan out.
func TestPlan(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	plan, deed := f.task("a", "move it"), f.task("a", "go")
	plan.Options.Plan = true
	f.ending(f.submit(plan))
	f.ending(f.submit(deed))
	var modes []agent.Mode
	for _, spec := range f.agent.specs() {
		modes = append(modes, spec.Prompt.Mode)
	}
	if diff := cmp.Diff([]agent.Mode{agent.Plan, ""}, modes); diff != "" {
		t.Error(diff)
	}
}

// A thread remembers what its latest task requested, not what the policy made of it. Automatic work is not remembered.
func TestThread(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	first := f.task("a", "one")
	if _, err := f.desk.Thread(t.Context(), first.Thread); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	first.Repo, first.Ref, first.Options = "acme/api", "dev", tasks.Options{Model: "opus", Plan: true}
	f.submit(first)
	review := f.task("a", "two")
	review.Class = tasks.Review
	f.submit(review)
	got, err := f.desk.Thread(t.Context(), first.Thread)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tasks.Thread{
		Latest: first.ID, Repo: "acme/api", Ref: "dev", Profile: agent.Read, Options: tasks.Options{Model: "opus"},
	}, got); diff != "" {
		t.Error(diff)
	}
	s, err := f.desk.Status(t.Context(), first.ID)
	if err != nil || s.Task.Options.Limit != time.Hour {
		t.Errorf("limit %s, %v", s.Task.Options.Limit, err)
	}
	open, err := f.desk.Open(t.Context(), first.Thread)
	if err != nil || len(open) != 2 || open[0].Task.ID != first.ID || open[1].State != "waiting" {
		t.Errorf("open: %+v, %v", open, err)
	}
}
