package githubfake_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// What people do to an issue shows in its webhooks, its history and its lists, in which pull requests are issues too.
func TestIssues(t *testing.T) {
	t.Parallel()
	clock := githubfake.NewClock(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), time.Second)
	s, _ := start(t, githubfake.Config{Now: clock.Now})
	rc := receive(t, s)
	open(t, s)
	n := must(s.OpenIssue(t.Context(), githubfake.Issue{
		Repo: repo, Title: "Broken", Body: "It is.", User: "mallory", Labels: []string{"bug"},
	}))(t)
	for _, err := range []error{
		s.LabelIssue(t.Context(), repo, n, "errand", "ann"), s.UnlabelIssue(t.Context(), repo, n, "bug", "ann"),
		s.AssignIssue(t.Context(), repo, n, "errand", "bob"),
		s.EditIssue(t.Context(), repo, n, "Very broken", "It was."),
		s.ChangeIssue(t.Context(), repo, n, "closed", "ann"), s.ChangeIssue(t.Context(), repo, n, "reopened", "ann"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	id := must(s.Comment(t.Context(), repo, n, "cleo", "Me too."))(t)
	actions := slices.DeleteFunc(rc.seen(), func(one string) bool { return !strings.HasPrefix(one, "issue") })
	want := []string{
		"issues opened", "issues labeled", "issues labeled", "issues unlabeled", "issues assigned", "issues edited",
		"issues closed", "issues reopened", "issue_comment created",
	}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Error(diff)
	}
	said := last[*github.IssueCommentEvent](t, rc)
	if said.GetIssue().IsPullRequest() || said.GetIssue().GetNumber() != n || said.GetComment().GetID() != id {
		t.Errorf("%+v", said)
	}

	c := newClient(t, s, "ghp_test")
	one, _, err := c.Issues.Get(t.Context(), "acme", "api", n)
	if err != nil || one.GetTitle() != "Very broken" || one.GetBody() != "It was." ||
		one.GetAssignee().GetLogin() != "errand" || len(one.Labels) != 1 {
		t.Errorf("%v %v", one, err)
	}
	if pr, _, err := c.Issues.Get(t.Context(), "acme", "api", 1); err != nil || !pr.IsPullRequest() {
		t.Errorf("%v %v", pr, err)
	}
	_, _, err = c.PullRequests.Get(t.Context(), "acme", "api", n)
	wantError(t, err, 404, "Not Found")
	history, _, err := c.Issues.ListIssueEvents(t.Context(), "acme", "api", n, nil)
	if err != nil || len(history) != 3 || history[1].GetActor().GetLogin() != "ann" ||
		history[2].GetAssignee().GetLogin() != "errand" {
		t.Errorf("%v %v", history, err)
	}
	all, _, err := c.Issues.ListByRepo(t.Context(), "acme", "api", &github.IssueListByRepoOptions{Sort: "updated"})
	if err != nil || len(all) != 2 || all[0].GetNumber() != n {
		t.Errorf("%v %v", all, err)
	}
	if _, _, err := c.Reactions.CreateIssueReaction(t.Context(), "acme", "api", n, "eyes"); err != nil ||
		len(s.IssueReactions(repo, n)) != 1 {
		t.Error(err)
	}
}

// Apps cannot comment where a conversation is locked. A deleted issue is gone, and a transferred one redirects to what
// is another issue.
func TestEndedIssues(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	must(s.CreateRepo("acme", "web", nil))(t)
	c := newClient(t, s, "ghp_test")
	n := must(s.OpenIssue(t.Context(), githubfake.Issue{Repo: repo, Title: "One"}))(t)
	if err := s.ChangeIssue(t.Context(), repo, n, "locked", "ann"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Issues.CreateComment(t.Context(), "acme", "api", n,
		&github.IssueComment{Body: new("x")}); err != nil {
		t.Error(err)
	}
	one, _, err := c.Issues.Get(t.Context(), "acme", "api", n)
	if err != nil || !one.GetLocked() {
		t.Errorf("%v %v", one, err)
	}
	moved := must(s.TransferIssue(t.Context(), repo, n, "acme/web", "ann"))(t)
	there, _, err := c.Issues.Get(t.Context(), "acme", "api", n)
	if err != nil || there.GetNumber() != moved || there.GetID() == one.GetID() {
		t.Errorf("%v %v", there, err)
	}
	gone := must(s.OpenIssue(t.Context(), githubfake.Issue{Repo: repo, Title: "Two"}))(t)
	if err := s.ChangeIssue(t.Context(), repo, gone, "deleted", "ann"); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Issues.Get(t.Context(), "acme", "api", gone)
	wantError(t, err, http.StatusGone, "This issue was deleted")
	left, _, err := c.Issues.ListByRepo(t.Context(), "acme", "api", nil)
	if err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}

// The permission for pull requests does not open issues.
func TestIssuesNeedTheirPermission(t *testing.T) {
	t.Parallel()
	s, transport := startApp(t, githubfake.Config{Permissions: map[string]string{
		"metadata": "read", "pull_requests": "write",
	}})
	n := must(s.OpenIssue(t.Context(), githubfake.Issue{Repo: repo, Title: "One"}))(t)
	_, _, err := installed(t, s, transport).Issues.ListComments(t.Context(), "acme", "api", n, nil)
	wantError(t, err, http.StatusForbidden, "Resource not accessible by integration")
}
