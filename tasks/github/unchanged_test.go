package github

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// A push that does not alter the pull request's changes should not be reviewed again; one that does, or a request,
// should be.
func TestUnchangedIsNotReviewed(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.open()
	push := func(action string, files map[string]string) tasks.Task {
		w.Helper()
		must(w.hub.PushPR(w.Context(), repo, n, files))
		t := w.task(n, 0)
		t.Origin = []byte(strings.Replace(string(t.Origin), `"action":"opened"`, `"action":"`+action+`"`, 1))
		return t
	}
	first := push("synchronize", nil)
	if err := brief(w, first); err != nil {
		w.Errorf("the first: %v", err)
	}
	w.close(first, answered("Fine."))
	second := push("synchronize", nil)
	wantInput(w.T, brief(w, second), "Nothing has changed since the review of "+hub.ShortSHA(first.Ref)+".")
	wantInput(w.T, brief(w, push(subject.ActionPolled, nil)),
		"Nothing has changed since the review of "+hub.ShortSHA(second.Ref)+".")
	for _, action := range []string{"review_requested", "opened"} {
		if err := brief(w, push(action, nil)); err != nil {
			w.Errorf("%s: %v", action, err)
		}
	}
	third := push("synchronize", map[string]string{"change.go": "package other\n"})
	if err := brief(w, third); err != nil {
		w.Errorf("a change: %v", err)
	}
	// That one was never answered, so this one is not compared with it.
	if err := brief(w, push("synchronize", nil)); err != nil {
		w.Errorf("what was not reviewed, again: %v", err)
	}
	large := push("synchronize", map[string]string{"large": strings.Repeat("x\n", 20_001)})
	if err := brief(w, large); err != nil {
		w.Errorf("a change that GitHub does not show: %v", err)
	}
}

// The light of a push that changes nothing is that of the review which holds for it.
func TestUnchangedKeepsItsLight(t *testing.T) {
	both(t, func(w *world) {
		for i, c := range []struct {
			e      tasks.Ending
			check  string
			status string
		}{
			{reviewed("One.", flaw("one", 1)), "neutral: 1 new finding", "1 new finding, see the conversation"},
			{answered("In words."), "neutral: Reviewed", "Reviewed, see the conversation"},
			{reviewed("None."), "success: No findings", "No findings, see the conversation"},
		} {
			m := w.openCode(fmt.Sprint("ten", i))
			first := w.task(m, 10*i)
			first.Origin = []byte(strings.Replace(string(first.Origin), `"action":"opened"`,
				`"action":"synchronize"`, 1))
			if err := brief(w, first); err != nil {
				w.Fatal(err)
			}
			w.close(first, c.e)
			must(w.hub.PushPR(w.Context(), repo, m, nil))
			second := w.task(m, 10*i+1)
			second.Origin = []byte(strings.Replace(string(second.Origin), `"action":"opened"`,
				`"action":"synchronize"`, 1))
			err := brief(w, second)
			wantInput(w.T, err, "Nothing has changed since the review of "+hub.ShortSHA(first.Ref)+".")
			refused := tasks.Ending{Kind: tasks.Refused, Reason: "Nothing has changed since the review of " +
				hub.ShortSHA(first.Ref) + ".", At: ended}
			w.close(second, refused)
			want := c.check
			if !w.src.forge.IsApp() {
				want = c.status
			}
			if got := w.light(w.pull(m).HeadSHA); got != want {
				w.Errorf("%q, want %q", got, want)
			}
			for _, run := range w.hub.CheckRuns(repo, w.pull(m).HeadSHA) {
				if run.Summary != refused.Reason {
					w.Error(run.Summary)
				}
			}
		}
	})
}

// Automatic reviews should stop at the limit.
func TestReviewsAreBounded(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	n := w.open()
	for i := range subject.MaxReviews {
		all := f.tasks()
		if len(all) != 1 {
			t.Fatalf("round %d: %d tasks", i, len(all))
		}
		for range 2 { // it may be closed again
			w.close(all[0], answered("Fine."))
		}
		must(w.hub.PushPR(t.Context(), repo, n, map[string]string{"a": fmt.Sprint(i)}))
	}
	if p := must(w.src.memory.State(t.Context(), thread.Ref{Repo: repo, Number: n})); p.Reviews != subject.MaxReviews {
		t.Errorf("state: %+v", p)
	}
	status, said := f.send("pull_request", must(w.hub.Payload("synchronize", repo, n, "octocat")),
		githubfake.SendOptions{})
	if status != 202 ||
		!strings.HasPrefix(said, "Ignored: The pull request has reached its limit of automatic reviews") {
		t.Errorf("%d %s", status, said)
	}
}

// A head with a requested review should not be reviewed again because an event of it still waits.
func TestReviewedMeanwhile(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	w.talkers()
	f := w.listen()
	n := w.open()
	automatic := f.only()
	f.comment(n, "ann", "/review")
	all := f.tasks()
	asked := all[slices.IndexFunc(all, func(t tasks.Task) bool { return t.ID != automatic.ID })]
	if err := brief(w, asked); err != nil {
		t.Fatal(err)
	}
	w.close(asked, answered("Fine."))
	wantInput(t, brief(w, automatic), "The head was reviewed before.")
	if err := brief(w, asked); err != nil {
		t.Errorf("asked once more: %v", err)
	}
}
