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

func TestComments(t *testing.T) {
	t.Parallel()
	clock := githubfake.NewClock(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), 0)
	s, _ := start(t, githubfake.Config{Now: clock.Now})
	open(t, s)
	c := newClient(t, s, "ghp_test")
	write := func(body string) (*github.IssueComment, error) {
		v, _, err := c.Issues.CreateComment(t.Context(), "acme", "api", 1, &github.IssueComment{Body: &body})
		return v, err
	}
	first := must(write("hello"))(t)
	clock.Pass(time.Minute)
	if _, _, err := c.Issues.EditComment(t.Context(), "acme", "api", first.GetID(),
		&github.IssueComment{Body: new("bye")}); err != nil {
		t.Fatal(err)
	}
	got := s.Comments(repo, 1)[0]
	if got.Body != "bye" || got.Edits != 1 || got.User != "errand" || got.UpdatedAt.Sub(got.CreatedAt) != time.Minute {
		t.Errorf("after an edit: %+v", got)
	}

	// A limit in characters, not bytes.
	must(write(strings.Repeat("ü", 65_536)))(t)
	_, err := write(strings.Repeat("a", 65_537))
	wantError(t, err, 422, "Body is too long (maximum is 65536 characters)")
	_, err = write("")
	wantError(t, err, 422, "Body cannot be blank")
	if n := len(s.Comments(repo, 1)); n != 2 {
		t.Errorf("%d comments after two refusals, want 2", n)
	}
	_, _, err = c.Issues.CreateComment(t.Context(), "acme", "api", 9, &github.IssueComment{Body: new("x")})
	wantError(t, err, 404, "Not Found")

	if _, err := c.Issues.DeleteComment(t.Context(), "acme", "api", first.GetID()); err != nil {
		t.Fatal(err)
	}
	_, err = c.Issues.DeleteComment(t.Context(), "acme", "api", first.GetID())
	wantError(t, err, 404, "Not Found")
}

func TestCommentPages(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	var want []int64
	for range 130 {
		want = append(want, must(s.Comment(t.Context(), repo, 1, "alice", "hi"))(t))
	}
	c := newClient(t, s, "ghp_test")
	read := func(size int) (ids []int64, pages int) {
		o := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: size}}
		for {
			some, resp, err := c.Issues.ListComments(t.Context(), "acme", "api", 1, o)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, v := range some {
				ids = append(ids, v.GetID())
			}
			if o.Page = resp.NextPage; o.Page == 0 {
				return ids, pages
			}
		}
	}
	for size, wantPages := range map[int]int{0: 5, 10: 13, 500: 2} {
		ids, pages := read(size)
		if !slices.Equal(ids, want) || pages != wantPages {
			t.Errorf("per_page %d: %d comments on %d pages, want 130 on %d", size, len(ids), pages, wantPages)
		}
	}
	_, resp, err := c.Issues.ListComments(t.Context(), "acme", "api", 1,
		&github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 10, Page: 2}})
	if err != nil || resp.FirstPage != 1 || resp.PrevPage != 1 || resp.NextPage != 3 || resp.LastPage != 13 {
		t.Errorf("links of page 2: first %d prev %d next %d last %d (%v)", resp.FirstPage, resp.PrevPage, resp.NextPage,
			resp.LastPage, err)
	}
}

func TestReactions(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	id := must(s.Comment(t.Context(), repo, 1, "alice", "@errand fix"))(t)
	c := newClient(t, s, "ghp_test")
	first, resp, err := c.Reactions.CreateIssueCommentReaction(t.Context(), "acme", "api", id, "eyes")
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("first: %v %v", resp, err)
	}
	if _, resp, err = c.Reactions.CreateIssueCommentReaction(t.Context(), "acme", "api", id, "eyes"); err != nil ||
		resp.StatusCode != http.StatusOK {
		t.Errorf("the same again: %v %v", resp, err)
	}
	_, _, err = c.Reactions.CreateIssueCommentReaction(t.Context(), "acme", "api", id, "shrug")
	wantError(t, err, 422, "content")
	if all := s.Breaches(); len(all) != 1 {
		t.Errorf("breaches %q", all)
	}
	want := []githubfake.Reaction{{ID: first.GetID(), User: "errand", Content: "eyes"}}
	if diff := cmp.Diff(want, s.Comments(repo, 1)[0].Reactions); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}
	if _, _, err := c.Reactions.CreateIssueReaction(t.Context(), "acme", "api", 1, "rocket"); err != nil {
		t.Error(err)
	}
}

// The client's own actions come back as webhooks: a client that does not ignore its own
// comments loops here as it would on GitHub.
func TestOwnCommentsComeBack(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	rc := receive(t, s)
	must(s.Comment(t.Context(), repo, 1, "alice", "@errand fix"))(t)
	e := last[*github.IssueCommentEvent](t, rc)
	if !e.GetIssue().IsPullRequest() || e.GetIssue().GetNumber() != 1 || e.GetSender().GetLogin() != "alice" ||
		e.GetComment().GetBody() != "@errand fix" {
		t.Errorf("person's comment: %v", e)
	}

	c := newClient(t, s, "ghp_test")
	v, _, err := c.Issues.CreateComment(t.Context(), "acme", "api", 1, &github.IssueComment{Body: new("on it")})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Issues.EditComment(t.Context(), "acme", "api", v.GetID(),
		&github.IssueComment{Body: new("done")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), (*githubfake.Server).Settled); err != nil {
		t.Fatal(err)
	}
	want := []string{"issue_comment created", "issue_comment created", "issue_comment edited"}
	if diff := cmp.Diff(want, rc.seen()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if e := last[*github.IssueCommentEvent](t, rc); e.GetSender().GetLogin() != "errand" {
		t.Errorf("sender of our own edit: %s", e.GetSender().GetLogin())
	}
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{Quiet: true})
	rc := receive(t, s)
	open(t, s)
	c := newClient(t, s, "ghp_test")
	if _, _, err := c.Issues.CreateComment(t.Context(), "acme", "api", 1,
		&github.IssueComment{Body: new("x")}); err != nil {
		t.Fatal(err)
	}
	must(s.Comment(t.Context(), repo, 1, "alice", "y"))(t)
	want := []string{"pull_request opened", "issue_comment created"}
	if diff := cmp.Diff(want, rc.seen()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}
