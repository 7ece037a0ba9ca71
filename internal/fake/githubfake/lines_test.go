package githubfake_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// A person's comments on lines should have the diff above them, be announced before the review, and accept reactions.
func TestReviewWithLines(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	rc := receive(t, s)
	n := open(t, s)
	if _, err := s.Review(t.Context(), repo, n, "alice", "COMMENT", "See below.",
		githubfake.Line{Path: "README.md", Line: 2, Body: "Why?"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Review(t.Context(), repo, n, "alice", "COMMENT", "",
		githubfake.Line{Path: "README.md", Line: 7, Body: "Why?"}); err == nil {
		t.Error("a comment outside the diff was taken")
	}
	want := []string{"pull_request opened", "pull_request_review_comment created", "pull_request_review submitted"}
	if diff := cmp.Diff(want, rc.seen()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	c := newClient(t, s, "ghp_test")
	list, _, err := c.PullRequests.ListComments(t.Context(), "acme", "api", n, nil)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if hunk := list[0].GetDiffHunk(); !strings.HasPrefix(hunk, "@@ -1,3 +1,3 @@") ||
		!strings.HasSuffix(hunk, "\n-two\n+TWO") {
		t.Errorf("hunk: %q", hunk)
	}
	if _, _, err := c.Reactions.CreatePullRequestCommentReaction(t.Context(), "acme", "api",
		list[0].GetID(), "eyes"); err != nil {
		t.Error(err)
	}
	if got := s.ReviewComments(repo, n)[0].Reactions; len(got) != 1 || got[0].User != "errand" ||
		got[0].Content != "eyes" {
		t.Errorf("reactions: %+v", got)
	}
	_, _, err = c.Reactions.CreatePullRequestCommentReaction(t.Context(), "acme", "api", 999, "eyes")
	wantError(t, err, 404, "Not Found")
}
