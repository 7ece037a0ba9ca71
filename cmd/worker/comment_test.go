package main

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/tasks"
)

// pull opens a pull request that is not reviewed, because it is a draft.
func (w *world) pull() (number int) {
	w.Helper()
	w.github.SetPermission(repo, "ann", "write")
	n, err := w.github.OpenPR(w.Context(), githubfake.PR{
		Repo: repo, Head: "fix-total", Title: "Fix the total", User: "ann", Draft: true,
		Files: map[string]string{"total.go": "package total\n\nvar Total = 1\n"},
	})
	if err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) comment(n int, body string) (id int64) {
	w.Helper()
	id, err := w.github.Comment(w.Context(), repo, n, "ann", body)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

// replies waits until errand has answered that often in a pull request, and returns the answers.
func (w *world) replies(number, n int) (all []string) {
	w.Helper()
	w.onGitHub(func() bool {
		all = all[:0]
		for _, c := range w.github.Comments(repo, number) {
			if c.User == "errand" && strings.HasPrefix(c.Body, "<!-- errand:reply ") {
				all = append(all, c.Body)
			}
		}
		return len(all) >= n
	})
	if len(all) != n {
		w.Errorf("%d replies, want %d: %q", len(all), n, all)
	}
	return all
}

// signed waits for a reaction of errand.
func (w *world) signed(number int, id int64, sign string) {
	w.Helper()
	w.onGitHub(func() bool {
		for _, c := range w.github.Comments(repo, number) {
			for _, r := range c.Reactions {
				if c.ID == id && r.Content == sign {
					return true
				}
			}
		}
		return false
	})
}

func (w *world) onGitHub(holds func() bool) {
	w.Helper()
	ctx := await.Context(w)
	if err := w.github.Wait(ctx, func(*githubfake.Server) bool { return holds() }); err != nil {
		w.Fatal(err)
	}
}

// Work that started in Slack continues in its pull request, in the same conversation and on the same branch, and
// questions there are answered there.
func TestPullRequestJoinsItsThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.github.SetPermission(repo, "ann", "write")
	w.model.Answer("mend the total", bash("echo '// cents' >> total.go && git commit -qam 'Count in cents'"),
		modelfake.Turn{Text: "Mended."})
	w.model.Answer("and the tax", bash("echo '// tax' >> total.go && git commit -qam 'And the tax'"),
		modelfake.Turn{Text: "The tax too. ({{turns}} prompts)"})
	base := w.standalone()
	root := w.mention("mend the total", "")
	w.answers(root, 1)
	w.signed(1, w.comment(1, "@errand and the tax?"), "hooray")
	if got := w.replies(1, 1)[0]; !strings.Contains(got, "The tax too. (2 prompts)") ||
		!strings.Contains(got, "Pull request "+repo+"#1") {
		t.Error(got)
	}
	w.published(w.github.Pulls(repo)[0].Head, "And the tax, Count in cents", "package total\n// cents\n// tax\n")
	w.answers(root, 1)
	if st, ok := w.fleet(base)["and the tax?"]; !ok || st.Ending.Kind != tasks.Answered ||
		!strings.HasPrefix(st.Task.Thread, "slack/") {
		t.Errorf("%+v", st)
	}
}
