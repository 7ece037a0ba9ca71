package github

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// A pull request opens as the repository wants it, with the asker as its reviewer. A later update changes none of it.
func TestPublishInStyle(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.started()
	w.hub.SetPermission(repo, "ann", "write")
	work := w.work(1)
	work.Reviewer = "ann"
	work.Style = forge.Style{
		Title: "[errand] ", Labels: []string{"bot", "needs review"}, Ready: true,
		Template: "## Tests\n\n- [ ] @acme/qa\n<!-- errand:work task=1 commit=1 thread=1 -->\n",
	}
	if pr := w.publish(work); pr.Draft {
		w.Errorf("opened a draft: %+v", pr)
	}
	got := w.pull(1)
	if got.Draft || got.Title != "[errand] Fix the total" || !cmp.Equal(got.Labels, work.Style.Labels) ||
		!cmp.Equal(got.Reviewers, []string{"ann"}) {
		w.Errorf("opened %+v", got)
	}
	_, rest, _ := strings.Cut(got.Body, sectionEnd)
	if !strings.HasPrefix(rest, "\n\n## Tests\n\n- [ ] @") || strings.Contains(rest, "@acme") ||
		strings.Contains(rest, "errand:") {
		w.Errorf("the template became %q", rest)
	}
	work = w.work(2)
	work.Style = forge.Style{Title: "other ", Labels: []string{"other"}}
	w.publish(work)
	if after := w.pull(1); !strings.HasSuffix(after.Body, rest) || after.Title != got.Title ||
		len(after.Labels) != 2 {
		w.Errorf("updated %+v", after)
	}
}

// Neither a reviewer whom GitHub refuses, nor labels that it does not take, keep the pull request from being opened.
// errand asks no review of itself.
func TestPublishWithoutReviewer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reviewer string
		asked    int
	}{"stranger": {"eve", 1}, "errand": {"errand-bot", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withToken(t).started()
			if c.asked == 0 {
				c.reviewer = must(w.forge.Login(t.Context()))
			}
			w.hub.Fail("POST /repos/{o}/{r}/issues/{n}/labels", githubfake.Failure{Status: 403})
			work := w.work(1)
			work.Reviewer, work.Style.Labels = c.reviewer, []string{"bot"}
			if pr := w.publish(work); pr.Number != 1 || !pr.Draft {
				t.Errorf("opened %+v", pr)
			}
			if n := len(w.hub.Calls("POST /repos/{o}/{r}/pulls/{n}/requested_reviewers")); n != c.asked ||
				len(w.pull(1).Reviewers) > 0 {
				t.Errorf("%d requests, %+v", n, w.pull(1))
			}
			if !strings.Contains(w.logs.String(), "pull request without label or reviewer") {
				t.Errorf("log: %s", w.logs)
			}
		})
	}
}

func TestMarkReady(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.started()
	w.publish(w.work(1))
	for range 2 {
		if err := w.forge.MarkReady(w.Context(), repo, 1); err != nil || w.pull(1).Draft {
			w.Errorf("marked: %v, %+v", err, w.pull(1))
		}
	}
	if n := len(w.hub.Calls("POST /graphql")); n != 1 {
		w.Errorf("%d mutations", n)
	}
	must(w.hub.OpenPR(w.Context(), githubfake.PR{
		Repo: repo, Head: "theirs", Draft: true, User: "ann", Files: map[string]string{"a": "b"},
	}))
	wantRefused(w.T, w.forge.MarkReady(w.Context(), repo, 2), "not my pull request")
	if !w.pull(2).Draft {
		w.Error("marked someone's draft")
	}
	if err := w.hub.ChangePR(w.Context(), repo, 1, "closed", "ann"); err != nil {
		w.Fatal(err)
	}
	wantRefused(w.T, w.forge.MarkReady(w.Context(), repo, 1), "not open")
	wantRefused(w.T, w.forge.MarkReady(w.Context(), repo, 9), "GitHub did not")
}

// The address of an account has its ID, and is asked for once.
func TestAddress(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	me := must(w.forge.Login(w.Context()))
	for _, login := range []string{"ann", "", "ann", ""} {
		got := must(w.forge.Address(w.Context(), repo, login))
		if login == "" {
			login = me
		}
		name, address, _ := strings.Cut(got, " <")
		if id, rest, _ := strings.Cut(address, "+"); name != login || strings.Trim(id, "0123456789") != "" ||
			rest != login+"@users.noreply.127.0.0.1>" {
			w.Errorf("%s", got)
		}
	}
	if n := len(w.hub.Calls("GET /users/{u}")); n != 2 {
		w.Errorf("%d look-ups", n)
	}
	if got, err := w.forge.Address(w.Context(), repo, "../x"); err == nil {
		w.Errorf("no login: %s", got)
	}
}
