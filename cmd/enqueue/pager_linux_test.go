package main

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
)

// A review is shown in words, in the user's pager.
func TestShowPagesAReview(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Review it")
	c := f.Claim(id)
	f.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Structured: json.RawMessage(`{"summary": "As JSON."}`)}})
	want := "One problem.\n\n**critical**: It overflows."
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
