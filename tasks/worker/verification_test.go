package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/publish"
)

// The verification finishes before the work is pushed, and its result is posted with the answer, whatever the agent
// says.
func TestChecksAreRun(t *testing.T) {
	t.Parallel()
	failed := func(said string) agent.Scripted {
		return agent.Scripted{Outcome: agent.Failed, ExitCode: 2, Output: said, Duration: time.Second}
	}
	for name, c := range map[string]struct {
		script func(r *remote, s agent.Script) (agent.Scripted, error)
		want   tasks.Verification
		note   string
	}{
		"good": {
			func(*remote, agent.Script) (agent.Scripted, error) {
				return agent.Scripted{Outcome: agent.Done, Output: "fine"}, nil
			},
			tasks.Verification{Ran: []tasks.Verified{
				{Command: "make test", Outcome: agent.Done}, {Command: "make lint", Outcome: agent.Done},
			}},
			"all checks succeeded",
		},
		"bad": {
			func(_ *remote, s agent.Script) (agent.Scripted, error) {
				if s.Line == "make lint" {
					return agent.Scripted{Outcome: agent.Limit, ExitCode: -1}, nil
				}
				return failed(strings.Repeat("x\n", 2000) + "it broke"), nil
			},
			tasks.Verification{Ran: []tasks.Verified{
				{
					Command: "make test", Outcome: agent.Failed, ExitCode: 2,
					Said: strings.Repeat("x\n", 2000/2-5) + "it broke",
				},
				{Command: "make lint", Outcome: agent.Limit, ExitCode: -1},
			}},
			"2 of 2 checks failed: make test, make lint",
		},
		"no sandbox": {
			func(_ *remote, s agent.Script) (agent.Scripted, error) {
				if s.Line == "make lint" {
					return agent.Scripted{}, errors.New("no sandbox")
				}
				return failed("it broke"), nil
			},
			tasks.Verification{
				Ran:   []tasks.Verified{{Command: "make test", Outcome: agent.Failed, ExitCode: 2, Said: "it broke"}},
				Unrun: []string{"make lint"}, Problem: "the worker could not start them",
			},
			"1 of 2 checks failed: make test; 1 was not run: the worker could not start them",
		},
		"stopped": {
			func(r *remote, s agent.Script) (agent.Scripted, error) {
				if _, err := r.desk.Cancel(r.Context(), s.ID, "ann"); err != nil {
					return agent.Scripted{}, err
				}
				return agent.Scripted{Outcome: agent.Stopped}, nil
			},
			tasks.Verification{Unrun: []string{"make test", "make lint"}, Problem: "cancelled by ann"},
			"the checks were not run: cancelled by ann",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, (*remote).everything)
			h.checks = []string{"make test", "make lint"}
			r.agent.script = func(ctx context.Context, s agent.Script) (agent.Scripted, error) {
				if r.pushed("fake/a") != "" || s.Limit <= 0 || s.Limit > 15*time.Minute ||
					s.Dir != r.agent.specs()[0].Dir || len(s.Reads) == 0 {
					t.Errorf("ran %+v, pushed %q", s, r.pushed("fake/a"))
				}
				r.write(s.Dir, "by-product", "x")
				got, err := c.script(r, s)
				if got.Outcome == agent.Stopped {
					<-ctx.Done()
				}
				return got, err
			}
			r.worker(r.disk(t.TempDir()), with)
			e := r.ending(r.submit(r.repoTask("a")))
			if e.Kind != tasks.Answered || e.Published == nil ||
				e.Note() != "Pull request acme/api#7: https://hub.example/7 · 3 files, +3 −1 · "+c.note {
				t.Fatalf("ending = %+v, %q", e, e.Note())
			}
			if diff := cmp.Diff(&c.want, e.Published.Verification, cmpopts.IgnoreFields(tasks.Verified{}, "Duration"),
				cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			bare := r.bare()
			if files := r.git(bare, "ls-tree", "--name-only",
				publish.Branch("", "fake/a")); strings.Contains(files, "by-product") {
				t.Errorf("what a check left behind was published: %s", files)
			}
		})
	}
}

// Nothing is verified if nothing is published, or if the work was verified before.
func TestChecksAreNotRun(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	h.checks = []string{"make test"}
	ran := 0
	r.agent.script = func(context.Context, agent.Script) (agent.Scripted, error) {
		ran++
		return agent.Scripted{Outcome: agent.Done}, nil
	}
	r.worker(r.disk(t.TempDir()), with)
	r.ending(r.submit(r.repoTask("a")))
	r.agent.do = nil
	e := r.ending(r.submit(r.repoTask("a")))
	if ran != 1 || !e.Published.Verification.Before || strings.Contains(e.Note(), "check") {
		t.Errorf("%d runs, %+v, %q", ran, e.Published, e.Note())
	}
	if e := r.ending(r.submit(r.repoTask("b"))); ran != 1 || e.Published != nil {
		t.Errorf("%d runs, %+v", ran, e.Published)
	}
}

// A process that could still change the work keeps it from being published.
func TestCheckThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	h.checks = []string{"make test"}
	r.agent.script = func(_ context.Context, s agent.Script) (agent.Scripted, error) {
		return agent.Scripted{Outcome: agent.Failed, Stuck: 1}, os.RemoveAll(filepath.Join(s.Dir, "nothing"))
	}
	r.worker(r.disk(t.TempDir()), with)
	e := r.ending(r.submit(r.repoTask("a")))
	if r.pushed("fake/a") != "" || !strings.Contains(e.Note(), "a process of the checks could not be stopped") {
		t.Errorf("pushed %q, ending %q", r.pushed("fake/a"), e.Note())
	}
}
