package main

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
)

// A review is shown in words, the most serious findings first, in the user's pager.
func TestShowPagesAReview(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	r, err := f.Desk.Submit(t.Context(), tasks.Task{
		ID: tasks.NewID(time.Now(), "github", "x"), Source: "github", Kind: "review", Thread: "github/x",
		Class: tasks.Review, Profile: agent.Read, Repo: "acme/app", Actor: "ann", Prompt: "Review it",
	})
	if err != nil {
		t.Fatal(err)
	}
	c := f.Claim(r.ID)
	f.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Structured: json.RawMessage(`{
		"findings": [
			{"id": "a", "severity": "minor", "confidence": "high", "claim": "No test.\u001b[2J"},
			{"id": "b", "severity": "critical", "confidence": "high", "path": "pay/total.go", "start_line": 3, "line": 4, "claim": "It overflows.", "evidence": "int32\nends.",
			 "original": "a\nb\n", "suggestion": "c\u0007"}
		],
		"earlier": [{"id": "x", "status": "fixed"}], "summary": "One problem."
	}`)}})
	want := `One problem.

CRITICAL pay/total.go:3-4
  It overflows.
  int32
  ends.
    -a
    -b
    +c\x07

MINOR the change as a whole
  No test.

earlier findings: 1 fixed`
	f.env = maps.Clone(f.env)
	maps.Copy(f.env, map[string]string{"PATH": os.Getenv("PATH"), "PAGER": "sed s/^/:/"})
	paged := ":\n:> Review it\n:\n:" + strings.ReplaceAll(want, "\n", "\n:")
	if seen := f.sit(wide, nil, "show", c.ID()).exits(0); !strings.HasSuffix(seen, paged) {
		t.Errorf("one sees\n%s\nwant\n%s", seen, want)
	}
	f.env["PAGER"] = "no-such-pager"
	if seen := f.sit(wide, nil, "show", c.ID()).exits(0); !strings.HasSuffix(seen, want) {
		t.Errorf("without a pager, one sees\n%s\nwant\n%s", seen, want)
	}
}

// To leave the pager early is no error.
func TestLeavingThePager(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit(strings.Repeat("a line\n", 100_000))
	f.env = maps.Clone(f.env)
	maps.Copy(f.env, map[string]string{"PATH": os.Getenv("PATH"), "PAGER": "head -n 1"})
	if seen := f.sit(wide, nil, "show", id).exits(0); strings.Count(seen, "\n") > 1 || !strings.Contains(seen, display.TaskID(id)) {
		t.Errorf("one sees\n%s", seen)
	}
}
