package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/api"
)

// reviews is a source that knows one review, and what became of the findings in one repository.
type reviews struct{}

func (reviews) Reported(t tasks.Task, _ tasks.Ending) *tasks.ReviewResult {
	if t.Prompt != "Review it" {
		return nil
	}
	return &tasks.ReviewResult{}
}

func (reviews) Result(context.Context, tasks.Task, tasks.Ending) (*tasks.ReviewResult, error) {
	return &tasks.ReviewResult{Text: "One problem.\n\n**critical**: It overflows.\x1b[2J"}, nil
}

func (reviews) Acceptance(_ context.Context, repo string) ([]tasks.Acceptance, error) {
	if repo != "acme/api" {
		return nil, nil
	}
	return []tasks.Acceptance{{Kind: "security", Fixed: 12}, {Kind: "tests", Fixed: 1, Dismissed: 3, Ignored: 2}}, nil
}

// A review is shown in words, not in the JSON that the agent answered with.
func TestShowAReview(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Review it")
	f.End(f.Claim(id), tasks.Ending{
		Kind: tasks.Answered, Result: agent.Result{Structured: json.RawMessage(`{"summary": "As JSON."}`)},
	})
	code, out, errs := f.run("show", id)
	if code != 0 || errs != "" || !strings.HasSuffix(out, "\n> Review it\n\nOne problem.\n\n**critical**: It overflows.\n") {
		t.Errorf("exit %d: %s%s", code, errs, out)
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	code, out, errs := f.run("findings", "--repo", "acme/api")
	want := strings.Join([]string{
		"KIND      FIXED  DISMISSED  IGNORED",
		"security  12     0          0",
		"tests     1      3          2", "",
	}, "\n")
	if code != 0 || errs != "" || out != want {
		t.Errorf("exit %d: %s\ngot\n%swant\n%s", code, errs, out, want)
	}
	var a api.Findings
	if _, out, _ := f.run("findings", "--json", "--repo", "acme/api"); json.Unmarshal([]byte(out), &a) != nil ||
		len(a.Kinds) != 2 {
		t.Errorf("%+v: %s", a, out)
	}
	if code, out, errs := f.run("findings", "--repo", "acme/web"); code != 0 || out != "" ||
		!strings.Contains(errs, "no findings counted") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for _, args := range [][]string{nil, {"--repo", "acme/api", "x"}} {
		if code, _, _ := f.run(append([]string{"findings"}, args...)...); code != 2 {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
