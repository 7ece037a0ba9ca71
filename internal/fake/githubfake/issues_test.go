package githubfake_test

import (
	"net/http"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

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
