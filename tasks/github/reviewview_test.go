package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/settings"
)

// The console and the API show what was posted of a review, in the words of a notice and without a request to GitHub.
// Before it is posted, they show what the agent found.
func TestReviewForTheConsole(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.setUp(map[string]string{settings.File: "review: {severity: major}\n"})
	n := w.openCode("ten")
	pr := w.pull(n)
	small := flaw("small", 5)
	small.Severity = findings.Minor
	task, e := w.task(n, 0), reviewed("Two, @octocat.", flaw("kept", 3), small)
	source := w.src.Capabilities().Reviews
	see := func(task tasks.Task, e tasks.Ending, want ...string) *tasks.ReviewResult {
		w.Helper()
		got := must(source.Result(w.Context(), task, e))
		if got == nil {
			w.Fatal("the review is not known")
		}
		for _, words := range want {
			words, no := strings.CutPrefix(words, "!")
			if strings.Contains(got.Text, words) == no {
				w.Errorf("%q, no %v: %s", words, no, got.Text)
			}
		}
		return got
	}
	place := "[`ten.txt:3`](" + w.hub.URL() + "/" + repo + "/blob/" + pr.HeadSHA + "/ten.txt#L3)"
	if r := see(task, e, "Two, @octocat.", place, "It is small", "These are all findings of the agent."); r.Waits {
		w.Error("it waits before it is posted")
	}
	w.close(task, e)
	w.close(task, e)
	got := see(task, e, "Two, @octocat.", place, "!It is small", "Not shown: 1 finding below", "!all findings")
	unread, cancel := context.WithCancel(w.Context())
	cancel()
	if r, err := source.Result(unread, task, e); !errors.Is(err, context.Canceled) {
		w.Errorf("what was posted cannot be read now: %+v, %v", r, err)
	}
	got.Text = ""
	want := &tasks.ReviewResult{Head: hub.ShortSHA(pr.HeadSHA), URL: fmt.Sprintf("%s/%s/pull/%d", w.hub.URL(), repo, n), Reported: 2}
	if diff := cmp.Diff(want, source.Reported(task, e)); diff != "" {
		w.Error(diff)
	}
	want.Waits = true
	if diff := cmp.Diff(want, got); diff != "" {
		w.Error(diff)
	}

	must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"ten.txt": lines(10, 1, "better")}))
	again, ee := w.task(n, 1), w.rechecked(n, map[string]findings.Status{"kept": findings.Open}, small)
	w.close(again, ee)
	if r := see(again, ee, "Still open", "It is kept", "!It is small"); !r.Waits {
		w.Error("an open finding of an earlier review does not wait")
	}
	if r := see(task, e, place); r.Waits {
		w.Error("an earlier review waits")
	}
	must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"ten.txt": lines(10, 3, "better")}))
	last, le := w.task(n, 2), w.rechecked(n, map[string]findings.Status{"kept": findings.Fixed})
	w.close(last, le)
	if r := see(last, le, "~~It is kept"); r.Waits {
		w.Error("it waits, and all is fixed")
	}
	damage := func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("[]"), nil }
	if err := w.db.Memos.ChangeMemo(w.Context(), w.ledger(n).Name, damage); err != nil {
		w.Fatal(err)
	}
	see(task, e, "It is small", "These are all findings of the agent.")
	other, failed := task, e
	other.Kind, failed.Kind = "mention", tasks.Failed
	for name, of := range map[string]struct {
		task tasks.Task
		e    tasks.Ending
	}{"no review": {other, e}, "no findings": {task, answered("All is well.")}, "failed": {task, failed}} {
		if r := source.Reported(of.task, of.e); r != nil {
			w.Errorf("%s: %+v", name, r)
		}
		if r := must(source.Result(w.Context(), of.task, of.e)); r != nil {
			w.Errorf("%s: %+v", name, r)
		}
	}
}
