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
	rc := receive(t, s)
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
	if err := s.Wait(t.Context(), (*githubfake.Server).Settled); err != nil {
		t.Fatal(err)
	}
	if e := last[*github.StatusEvent](t, rc); e.GetSHA() != sha || e.GetState() != "success" ||
		e.GetContext() != "errand" {
		t.Errorf("status event: %v", e)
	}
}

func TestTooManyStatuses(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	sha := must(r.SHA("main"))(t)
	c := newClient(t, s, "ghp_test")
	set := func(context string) error {
		_, _, err := c.Repositories.CreateStatus(t.Context(), "acme", "api", sha,
			&github.RepoStatus{State: new("pending"), Context: &context})
		return err
	}
	for range 1000 {
		if err := set("errand"); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, set("errand"), 422, "reached the maximum number of statuses")
	if err := set("other"); err != nil {
		t.Errorf("another context: %v", err)
	}
}

func TestRefWithSlashes(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	sha := must(r.Commit("errand/a/b", "main", map[string]string{"x": "x"}, "x"))(t)
	c := newClient(t, s, "ghp_test")
	v, _, err := c.Repositories.GetCombinedStatus(t.Context(), "acme", "api", "errand/a/b", nil)
	if err != nil || v.GetSHA() != sha {
		t.Errorf("combined status of a branch with slashes: %v %v", v.GetSHA(), err)
	}
	_, _, err = c.Repositories.GetCombinedStatus(t.Context(), "acme", "api", "none", nil)
	wantError(t, err, 422, "No commit found for SHA: none")
}

func TestCheckRunsNeedAnApp(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	sha := must(s.Repo(repo).SHA("main"))(t)
	c := newClient(t, s, "ghp_test")
	const refusal = "Resource not accessible by personal access token"
	_, _, err := c.Checks.CreateCheckRun(t.Context(), "acme", "api",
		github.CreateCheckRunOptions{Name: "errand", HeadSHA: sha})
	wantError(t, err, 403, refusal)
	_, _, err = c.Checks.UpdateCheckRun(t.Context(), "acme", "api", 1, github.UpdateCheckRunOptions{Name: "errand"})
	wantError(t, err, 403, refusal)
	_, _, err = c.Checks.ListCheckRunsForRef(t.Context(), "acme", "api", sha, nil)
	wantError(t, err, 403, refusal)
}

func TestCheckRuns(t *testing.T) {
	t.Parallel()
	s, tr := startApp(t, githubfake.Config{})
	rc := receive(t, s)
	open(t, s)
	sha := s.Pulls(repo)[0].HeadSHA
	c := installed(t, s, tr)
	output := func(title string) *github.CheckRunOutput {
		return &github.CheckRunOutput{Title: &title, Summary: new("sum")}
	}
	run, _, err := c.Checks.CreateCheckRun(t.Context(), "acme", "api", github.CreateCheckRunOptions{
		Name: "errand", HeadSHA: sha, ExternalID: new("task-1"), Status: new("in_progress"),
		Output: output("Starting"),
	})
	if err != nil {
		t.Fatal(err)
	}
	update := func(o github.UpdateCheckRunOptions) error {
		o.Name = "errand"
		_, _, err := c.Checks.UpdateCheckRun(t.Context(), "acme", "api", run.GetID(), o)
		return err
	}
	long := output("Long")
	long.Summary = new(strings.Repeat("x", 65_536))
	wantError(t, update(github.UpdateCheckRunOptions{Output: long}), 422, "maxLength")
	wantError(t, update(github.UpdateCheckRunOptions{Status: new("completed")}), 422, "conclusion")
	wantError(t, update(github.UpdateCheckRunOptions{Conclusion: new("fine")}), 422, "conclusion")
	if all := s.Breaches(); len(all) != 3 {
		t.Errorf("breaches %q", all)
	}
	for _, o := range []github.UpdateCheckRunOptions{
		{Output: output("Reading")},
		{Conclusion: new("neutral"), Output: output("Done")},
	} {
		if err := update(o); err != nil {
			t.Fatal(err)
		}
	}
	all := s.CheckRuns(repo, sha)
	if len(all) != 1 || all[0].ExternalID != "task-1" || all[0].CompletedAt.IsZero() {
		t.Fatalf("check runs: %+v", all)
	}
	want := []githubfake.CheckState{
		{Status: "in_progress", Title: "Starting", Summary: "sum"},
		{Status: "in_progress", Title: "Reading", Summary: "sum"},
		{Status: "completed", Conclusion: "neutral", Title: "Done", Summary: "sum"},
	}
	if diff := cmp.Diff(want, all[0].History); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if err := s.Wait(t.Context(), (*githubfake.Server).Settled); err != nil {
		t.Fatal(err)
	}
	wantEvents := []string{"pull_request opened", "check_run created", "check_run completed"}
	if diff := cmp.Diff(wantEvents, rc.seen()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if e := last[*github.CheckRunEvent](t, rc); len(e.GetCheckRun().PullRequests) != 1 ||
		e.GetCheckRun().GetHeadSHA() != sha {
		t.Errorf("check_run event: %v", e.GetCheckRun())
	}

	// A second run of the same name hides the first, unless all are asked for.
	second, _, err := c.Checks.CreateCheckRun(t.Context(), "acme", "api",
		github.CreateCheckRunOptions{Name: "errand", HeadSHA: sha})
	if err != nil || second.GetStatus() != "queued" {
		t.Fatalf("second run: %v %v", second, err)
	}
	list := func(filter string) int {
		v, _, err := c.Checks.ListCheckRunsForRef(t.Context(), "acme", "api", "change",
			&github.ListCheckRunsOptions{Filter: &filter})
		if err != nil || v.CheckRuns[0].GetID() != second.GetID() {
			t.Fatalf("list: %v %v", v, err)
		}
		return v.GetTotal()
	}
	if latest, every := list("latest"), list("all"); latest != 1 || every != 2 {
		t.Errorf("%d latest, %d in all, want 1 and 2", latest, every)
	}
	_, _, err = c.Checks.CreateCheckRun(t.Context(), "acme", "api",
		github.CreateCheckRunOptions{Name: "x", HeadSHA: strings.Repeat("a", 40)})
	wantError(t, err, 422, "No commit found for SHA")
}
