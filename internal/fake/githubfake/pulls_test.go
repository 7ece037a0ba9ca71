package githubfake_test

import (
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func TestCreateListEditPull(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	must(r.Commit("errand/fix", "main", map[string]string{"fix.txt": "x"}, "fix"))(t)
	must(r.Commit("same", "main~0", nil, "empty"))(t)
	c := newClient(t, s, "ghp_test")
	create := func(title, head, base string) error {
		pr, _, err := c.PullRequests.Create(t.Context(), "acme", "api", &github.NewPullRequest{
			Title: &title, Head: &head, Base: &base, Body: new("why"), Draft: new(true),
		})
		if err == nil && (!pr.GetDraft() || pr.GetUser().GetLogin() != "errand" || pr.GetBody() != "why") {
			t.Errorf("created: draft %v by %s: %q", pr.GetDraft(), pr.GetUser().GetLogin(), pr.GetBody())
		}
		return err
	}
	if err := create("Fix", "errand/fix", "main"); err != nil {
		t.Fatal(err)
	}
	wantError(t, create("Again", "acme:errand/fix", "main"), 422, "A pull request already exists for acme:errand/fix.")
	wantError(t, create("", "same", "main"), 422, "title missing_field")
	wantError(t, create("No", "none", "main"), 422, "head invalid")
	wantError(t, create("No", "mallory:errand/fix", "main"), 422, "head invalid")
	wantError(t, create("No", "errand/fix", "none"), 422, "base invalid")
	wantError(t, create("No", "main", "errand/fix"), 422, "No commits between errand/fix and main")

	find := func(o *github.PullRequestListOptions) int {
		list, _, err := c.PullRequests.List(t.Context(), "acme", "api", o)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for _, c := range []struct {
		o    github.PullRequestListOptions
		want int
	}{
		{github.PullRequestListOptions{}, 1},
		{github.PullRequestListOptions{Head: "acme:errand/fix"}, 1},
		{github.PullRequestListOptions{Head: "other:errand/fix"}, 0},
		{github.PullRequestListOptions{Base: "other"}, 0},
		{github.PullRequestListOptions{State: "closed"}, 0},
	} {
		if got := find(&c.o); got != c.want {
			t.Errorf("list %+v: %d pull requests, want %d", c.o, got, c.want)
		}
	}

	_, _, err := c.PullRequests.Edit(t.Context(), "acme", "api", 1,
		&github.PullRequest{Title: new("New"), State: new("closed")})
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Pulls(repo)[0]; p.Title != "New" || p.State != "closed" || p.Body != "why" {
		t.Errorf("after the edit: %+v", p)
	}
	if got := find(&github.PullRequestListOptions{State: "closed"}); got != 1 {
		t.Errorf("%d closed pull requests, want 1", got)
	}
}
