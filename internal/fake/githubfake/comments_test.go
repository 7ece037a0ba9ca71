package githubfake_test

import (
	"strings"
	"testing"
	"time"

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
