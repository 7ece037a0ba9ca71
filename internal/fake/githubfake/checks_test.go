package githubfake_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	sha := s.Pulls(repo)[0].HeadSHA
	c := newClient(t, s, "ghp_test")
	set := func(sha, context, state string) error {
		_, _, err := c.Repositories.CreateStatus(t.Context(), "acme", "api", sha,
			&github.RepoStatus{State: &state, Context: &context})
		return err
	}
	combined := func() string {
		v, _, err := c.Repositories.GetCombinedStatus(t.Context(), "acme", "api", "change", nil) // or by sha
		if err != nil {
			t.Fatal(err)
		}
		return v.GetState()
	}
	if got := combined(); got != "pending" {
		t.Errorf("without statuses: %s, want pending", got)
	}
	for _, step := range []struct{ context, state, want string }{
		{"errand", "pending", "pending"},
		{"ci", "success", "pending"},
		{"errand", "failure", "failure"},
		{"errand", "success", "success"},
	} {
		if err := set(sha, step.context, step.state); err != nil {
			t.Fatal(err)
		}
		if got := combined(); got != step.want {
			t.Errorf("after %s=%s: %s, want %s", step.context, step.state, got, step.want)
		}
	}
	var history []string
	for _, v := range s.Statuses(repo, sha) {
		history = append(history, v.Context+" "+v.State)
	}
	if diff := cmp.Diff([]string{
		"errand pending", "ci success", "errand failure", "errand success",
	}, history); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	wantError(t, set(sha, "x", "great"), 422, "state")
	if all := s.Breaches(); len(all) != 1 {
		t.Errorf("breaches %q", all)
	}
	wantError(t, set(strings.Repeat("0", 40), "x", "success"), 422, "No commit found for SHA")
	_, _, err := c.Repositories.CreateStatus(t.Context(), "acme", "api", sha, &github.RepoStatus{
		State: new("success"), Description: new(strings.Repeat("d", 141)),
	})
	wantError(t, err, 422, "maximum is 140 characters")
}
