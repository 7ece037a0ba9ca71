package github

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// The console and the API show a review in the words of a notice, without a request to GitHub.
func TestReviewForTheConsole(t *testing.T) {
	both(t, func(w *world) {
		n := w.openCode("ten")
		pr := w.pull(n)
		task, e := w.task(n, 0), reviewed("One, @octocat.", flaw("kept", 3))
		source := w.src.Capabilities().Reviews
		got := source.Reported(task, e)
		if got == nil {
			w.Fatal("the review is not known")
		}
		if !strings.Contains(got.Text, "[`ten.txt:3`]("+w.hub.URL()+"/"+repo+"/blob/"+pr.HeadSHA+"/ten.txt#L3)") ||
			!strings.HasPrefix(got.Text, "One, @octocat.") {
			w.Error(got.Text)
		}
		got.Text = ""
		want := &tasks.ReviewResult{Head: hub.ShortSHA(pr.HeadSHA), URL: fmt.Sprintf("%s/%s/pull/%d", w.hub.URL(), repo, n), Reported: 1}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Error(diff)
		}
		other, failed := task, e
		other.Kind, failed.Kind = "mention", tasks.Failed
		for name, of := range map[string]struct {
			task tasks.Task
			e    tasks.Ending
		}{"no review": {other, e}, "no findings": {task, answered("All is well.")}, "failed": {task, failed}} {
			if r := source.Reported(of.task, of.e); r != nil {
				w.Errorf("%s: %+v", name, r)
			}
		}
	})
}
