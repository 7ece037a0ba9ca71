package main

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/tasks"
)

// issue opens a stranger's issue.
func (w *world) issue(o githubfake.Issue) (number int) {
	w.Helper()
	if o.Repo = repo; o.User == "" {
		o.User = "stranger"
	}
	n, err := w.github.OpenIssue(w.Context(), o)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// showsState waits until the one comment with the state of an issue has these texts.
func (w *world) showsState(n int, texts ...string) {
	w.Helper()
	w.onGitHub(func() bool {
		found := 0
		for _, c := range w.github.Comments(repo, n) {
			if !strings.HasPrefix(c.Body, "<!-- errand:status -->\n") {
				continue
			}
			found++
			for _, text := range texts {
				if !strings.Contains(c.Body, text) {
					return false
				}
			}
		}
		return found == 1
	})
}

// A labelled issue becomes a draft pull request that fixes it. What is said on that pull request, and later on the
// issue, continues the same conversation on the same branch.
func TestIssueBecomesAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.github.SetPermission(repo, "ann", "write")
	w.model.Answer("take care of this issue", bash("echo '// cents' >> total.go && git commit -qam 'Count in cents'"),
		modelfake.Turn{Text: "Mended. Closes #7."})
	w.model.Answer("and the tax", bash("echo '// tax' >> total.go && git commit -qam 'And the tax'"),
		modelfake.Turn{Text: "The tax too. ({{turns}} prompts)"})
	w.model.Answer("is that all", modelfake.Turn{Text: "It is. ({{turns}} prompts)"})
	base := w.standalone()
	n := w.issue(githubfake.Issue{Title: "The total is wrong", Body: "It is one too much."})
	if err := w.github.LabelIssue(t.Context(), repo, n, "errand", "ann"); err != nil {
		t.Fatal(err)
	}
	first := w.replies(n, 1)[0]
	pull := w.github.Pulls(repo)[0]
	if !strings.Contains(first, "Mended.") || !strings.Contains(first, "Pull request "+repo+"#2") {
		t.Error(first)
	}
	if !pull.Draft || pull.Base != "main" || !strings.Contains(pull.Body, "fixes=1 -->\nFixes #1\n\nMended.") ||
		strings.Contains(pull.Body, "Closes #7") {
		t.Errorf("%+v", pull)
	}
	w.signed(2, w.comment(2, "@errand and the tax?"), "hooray")
	if got := w.replies(2, 1)[0]; !strings.Contains(got, "The tax too. (2 prompts)") {
		t.Error(got)
	}
	if got := w.github.Pulls(repo); len(got) != 1 ||
		!strings.Contains(got[0].Body, "fixes=1 -->\nFixes #1\n\nThe tax too.") {
		t.Errorf("%+v", got)
	}
	w.published(pull.Head, "And the tax, Count in cents", "package total\n// cents\n// tax\n")
	w.showsState(n, "Done: the answer to [ann](", "[draft pull request](", "/"+repo+"/pull/2)")
	w.signed(n, w.comment(n, "@errand is that all?"), "hooray")
	if got := w.replies(n, 2)[1]; !strings.Contains(got, "It is. (3 prompts)") {
		t.Error(got)
	}
	if st, ok := w.fleet(base)["and the tax?"]; !ok || st.Ending.Kind != tasks.Answered ||
		st.Task.Thread != "github/"+repo+"#1" {
		t.Errorf("%+v", st)
	}
}
