package githubfake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func inline(path, side string, start, line int) *github.DraftReviewComment {
	c := &github.DraftReviewComment{Path: &path, Line: &line, Body: new("why?")}
	if side != "" {
		c.Side = &side
	}
	if start != 0 {
		c.StartLine = &start
	}
	return c
}

// one hunk: lines 1-3 on both sides, line 2 changed.
func TestReviewIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	c := newClient(t, s, "ghp_test")
	post := func(event string, comments ...*github.DraftReviewComment) error {
		_, _, err := c.PullRequests.CreateReview(t.Context(), "acme", "api", 1, &github.PullRequestReviewRequest{
			Body: new("Looks odd."), Event: &event, Comments: comments,
		})
		return err
	}
	good := inline("README.md", "RIGHT", 0, 2)
	for _, bad := range []struct {
		c    *github.DraftReviewComment
		want string
	}{
		{inline("README.md", "RIGHT", 0, 4), "Line could not be resolved"},
		{inline("none.md", "RIGHT", 0, 1), "Path could not be resolved"},
		{inline("cmd/main.go", "RIGHT", 0, 1), "Path could not be resolved"}, // exists, unchanged
		{inline("README.md", "RIGHT", 9, 3), "Start line could not be resolved"},
		{inline("README.md", "RIGHT", 3, 3), "Start line must precede the end line."},
	} {
		wantError(t, post("COMMENT", good, bad.c), 422, bad.want)
	}
	if n := len(s.Reviews(repo, 1)) + len(s.ReviewComments(repo, 1)); n != 0 {
		t.Fatalf("refused reviews left %d things behind", n)
	}
	if err := post("COMMENT", good, inline("README.md", "LEFT", 0, 2), inline("README.md", "", 1, 3)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range s.ReviewComments(repo, 1) {
		got = append(got, fmt.Sprintf("%s %s %d-%d", v.Path, v.Side, v.StartLine, v.Line))
	}
	want := []string{"README.md RIGHT 0-2", "README.md LEFT 0-2", "README.md RIGHT 1-3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
	if v := s.Reviews(repo, 1)[0]; v.State != "COMMENTED" || v.CommitID != s.Pulls(repo)[0].HeadSHA ||
		v.User != "errand" {
		t.Errorf("review: %+v", v)
	}
	_, _, err := c.PullRequests.CreateReview(t.Context(), "acme", "api", 1,
		&github.PullRequestReviewRequest{Event: new("COMMENT")})
	wantError(t, err, 422, "Body can't be blank")
}

// What GitHub refuses of comments that are inside the diff.
func TestReviewRefusals(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	lines := func(change string) string { return change + strings.Repeat("same\n", 20) + change }
	must(s.CreateRepo("acme", "hunks", map[string]string{"a.txt": lines("old\n")}))(t)
	must(s.OpenPR(t.Context(), githubfake.PR{
		Repo: "acme/hunks", Head: "new", Files: map[string]string{"a.txt": lines("new\n")},
	}))(t)
	c := newClient(t, s, "ghp_test")
	post := func(body string, comments ...*github.DraftReviewComment) error {
		_, _, err := c.PullRequests.CreateReview(t.Context(), "acme", "hunks", 1, &github.PullRequestReviewRequest{
			Body: &body, Event: new("COMMENT"), Comments: comments,
		})
		return err
	}
	wordy := inline("a.txt", "RIGHT", 0, 1)
	wordy.Body = new(strings.Repeat("ä", 65_537))
	for _, bad := range []struct {
		err  error
		want string
	}{
		{post("x", inline("a.txt", "RIGHT", 2, 22)), "must be part of the same hunk"},
		{post("x", inline("a.txt", "BOTH", 0, 1)), "No subschema"},
		{post("x", wordy), "Body is too long"},
		{post(*wordy.Body), "Body is too long"},
		{post("x", inline("a.txt", "RIGHT", 0, 10)), "Line could not be resolved"}, // between the hunks
	} {
		wantError(t, bad.err, 422, bad.want)
	}
	wordy.Body = new(strings.Repeat("ä", 65_536))
	if err := post("", wordy, inline("a.txt", "RIGHT", 20, 22)); err != nil {
		t.Error(err)
	}
}

func TestReviewOfAnOldCommit(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	n := open(t, s)
	old := s.Pulls(repo)[0].HeadSHA
	must(s.PushPR(t.Context(), repo, n, map[string]string{"README.md": "one\ntwo\nthree\n", "b.txt": "b\n"}))(t)
	c := newClient(t, s, "ghp_test")
	post := func(commit string) error {
		_, _, err := c.PullRequests.CreateReview(t.Context(), "acme", "api", n, &github.PullRequestReviewRequest{
			CommitID: &commit, Event: new("COMMENT"),
			Comments: []*github.DraftReviewComment{inline("README.md", "RIGHT", 0, 2)},
		})
		return err
	}
	if err := post(old); err != nil {
		t.Errorf("review of the old head: %v", err)
	}
	wantError(t, post(s.Pulls(repo)[0].HeadSHA), 422, "Path could not be resolved") // back to what it was
	wantError(t, post(s.Pulls(repo)[0].BaseSHA), 422, "not part of the pull request")
}
