package githubfake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func lastPull(t *testing.T, rc *receiver) *github.PullRequestEvent {
	t.Helper()
	return last[*github.PullRequestEvent](t, rc)
}

func TestOpenAndPush(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	rc := receive(t, s)
	n := must(s.OpenPR(t.Context(), githubfake.PR{
		Repo: repo, Head: "change", Title: "Change", User: "alice", Draft: true, Labels: []string{"wip"},
		Files: map[string]string{"README.md": "x\n"},
	}))(t)
	if diff := cmp.Diff([]string{"pull_request opened", "pull_request labeled"}, rc.seen()); diff != "" {
		t.Fatal(diff)
	}
	e := lastPull(t, rc)
	if e.GetLabel().GetName() != "wip" || e.GetSender().GetLogin() != "alice" {
		t.Errorf("label %s by %s, want wip by alice", e.GetLabel().GetName(), e.GetSender().GetLogin())
	}
	pr := e.GetPullRequest()
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"number", e.GetNumber(), n},
		{"author", pr.GetUser().GetLogin(), "alice"},
		{"draft", pr.GetDraft(), true},
		{"label", pr.Labels[0].GetName(), "wip"},
		{"repository", e.GetRepo().GetFullName(), repo},
		{"head ref", pr.GetHead().GetRef(), "change"},
		{"head repo", pr.GetHead().GetRepo().GetFullName(), repo},
		{"head sha", pr.GetHead().GetSHA(), s.Pulls(repo)[0].HeadSHA},
		{"base sha", pr.GetBase().GetSHA(), s.Pulls(repo)[0].BaseSHA},
		{"html_url", pr.GetHTMLURL(), s.URL() + "/acme/api/pull/1"},
		{"changed files", pr.GetChangedFiles(), 1},
		{"mergeable", pr.Mergeable == nil, true}, // not computed yet
		{"updated_at", pr.GetUpdatedAt().IsZero(), false},
		{"installation", e.Installation == nil, true},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.what, c.got, c.want)
		}
	}

	before := pr.GetHead().GetSHA()
	after := must(s.PushPR(t.Context(), repo, n, map[string]string{"README.md": "y\n"}))(t)
	e = lastPull(t, rc)
	if e.GetAction() != "synchronize" || e.GetBefore() != before || e.GetAfter() != after {
		t.Errorf("%s %s..%s, want synchronize %s..%s", e.GetAction(), e.GetBefore(), e.GetAfter(), before, after)
	}
	if got := e.GetPullRequest().GetHead().GetSHA(); got != after {
		t.Errorf("head is %s, want %s", got, after)
	}
	// An empty push moves the head and leaves the diff.
	if empty := must(s.PushPR(t.Context(), repo, n, nil))(t); empty == after {
		t.Error("an empty push did not move the head")
	}
}

func TestDiffFilesAndCommits(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	must(r.Commit("main", "", map[string]string{"later.txt": "not in the diff\n"}, "later"))(t)
	must(r.Commit("change", "main~1", map[string]string{
		"README.md": "one\nTWO\nthree\n", "old.txt": githubfake.Deleted, "new.txt": strings.Repeat("a line\n", 20),
		"data.bin": "\x00\x01\x02", "cmd/main.go": githubfake.Deleted,
	}, "first\n\nwith a body"))(t)
	must(s.OpenPR(t.Context(), githubfake.PR{Repo: repo, Head: "change", Files: map[string]string{"z.txt": "z"}}))(t)
	c := newClient(t, s, "ghp_test")

	text, _, err := c.PullRequests.GetRaw(t.Context(), "acme", "api", 1, github.RawOptions{Type: github.Diff})
	if err != nil {
		t.Fatal(err)
	}
	if want := must(r.Git(t.Context(), "diff", "--full-index", "main...change"))(t); text != want {
		t.Errorf("diff is\n%s\nwant\n%s", text, want)
	}

	var files []string
	patches := map[string]string{}
	opts := &github.ListOptions{PerPage: 2}
	for pages := 0; ; pages++ {
		some, resp, err := c.PullRequests.ListFiles(t.Context(), "acme", "api", 1, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range some {
			files = append(files, fmt.Sprintf("%s %s<%s +%d -%d", f.GetStatus(), f.GetFilename(),
				f.GetPreviousFilename(), f.GetAdditions(), f.GetDeletions()))
			if f.Patch != nil {
				patches[f.GetFilename()] = f.GetPatch()
			}
		}
		if opts.Page = resp.NextPage; opts.Page == 0 {
			if pages != 2 {
				t.Errorf("5 files came on %d pages of 2", pages+1)
			}
			break
		}
	}
	want := []string{
		"modified README.md< +1 -1", "removed cmd/main.go< +0 -1", "added data.bin< +0 -0",
		"renamed new.txt<old.txt +0 -0", "added z.txt< +1 -0",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	wantPatches := map[string]string{
		"README.md":   "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three",
		"cmd/main.go": "@@ -1 +0,0 @@\n-package main",
		"z.txt":       "@@ -0,0 +1 @@\n+z\n\\ No newline at end of file",
	}
	if diff := cmp.Diff(wantPatches, patches); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
}

func TestDiffTooLarge(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	must(s.OpenPR(t.Context(), githubfake.PR{Repo: repo, Head: "huge", Files: map[string]string{
		"huge.txt": strings.Repeat("a line of some length, to be long\n", 20_001),
	}}))(t)
	c := newClient(t, s, "ghp_test")
	_, _, err := c.PullRequests.GetRaw(t.Context(), "acme", "api", 1, github.RawOptions{Type: github.Diff})
	wantError(t, err, 406, "too_large")
	files, _, err := c.PullRequests.ListFiles(t.Context(), "acme", "api", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if files[0].Patch != nil || files[0].GetAdditions() != 20_001 {
		t.Errorf("huge file: patch of %d bytes, %d additions", len(files[0].GetPatch()), files[0].GetAdditions())
	}
}

func TestDiffOfTooManyFiles(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	files := map[string]string{}
	for i := range 301 {
		files[fmt.Sprintf("many/%03d", i)] = "x\n"
	}
	must(s.OpenPR(t.Context(), githubfake.PR{Repo: repo, Head: "many", Files: files}))(t)
	c := newClient(t, s, "ghp_test")
	_, _, err := c.PullRequests.GetRaw(t.Context(), "acme", "api", 1, github.RawOptions{Type: github.Diff})
	wantError(t, err, 406, "too_large")
	some, resp, err := c.PullRequests.ListFiles(t.Context(), "acme", "api", 1,
		&github.ListOptions{PerPage: 100, Page: 4})
	if err != nil || len(some) != 1 || some[0].GetFilename() != "many/300" || resp.NextPage != 0 {
		t.Errorf("the fourth page: %v (%v)", some, err)
	}
}

func TestMergeable(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	open(t, s)
	c := newClient(t, s, "ghp_test")
	look := func() *github.PullRequest {
		pr, _, err := c.PullRequests.Get(t.Context(), "acme", "api", 1)
		if err != nil {
			t.Fatal(err)
		}
		return pr
	}
	if pr := look(); !pr.GetMergeable() || pr.GetMergeableState() != "clean" || pr.GetAdditions() != 1 {
		t.Errorf("mergeable %v %s, %d additions", pr.GetMergeable(), pr.GetMergeableState(), pr.GetAdditions())
	}
	must(r.Commit("main", "", map[string]string{"README.md": "one\n2\nthree\n"}, "conflict"))(t)
	if pr := look(); pr.Mergeable == nil || pr.GetMergeable() || pr.GetMergeableState() != "dirty" {
		t.Errorf("with a conflict: mergeable %v %s", pr.GetMergeable(), pr.GetMergeableState())
	}
	if err := s.ChangePR(t.Context(), repo, 1, "merged", "bob"); err == nil {
		t.Error("merged a conflict")
	}
	list, _, err := c.PullRequests.List(t.Context(), "acme", "api", nil)
	if err != nil {
		t.Fatal(err)
	}
	if list[0].Mergeable != nil || list[0].Additions != nil {
		t.Error("a list shows mergeable or counts, which GitHub's does not")
	}
}

func TestCreateListEditPull(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	rc := receive(t, s)
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
	if err := s.Wait(t.Context(), (*githubfake.Server).Settled); err != nil {
		t.Fatal(err)
	}
	want := []string{"pull_request opened", "pull_request edited", "pull_request closed"}
	if diff := cmp.Diff(want, rc.seen()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

func TestEditBase(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	rc := receive(t, s)
	must(r.Commit("release", "main", map[string]string{"r.txt": "r"}, "release"))(t)
	must(r.Commit("fix", "release", map[string]string{"fix.txt": "f"}, "fix"))(t)
	must(s.OpenPR(t.Context(), githubfake.PR{Repo: repo, Head: "fix"}))(t)
	c := newClient(t, s, "ghp_test")
	edit := func(pr *github.PullRequest) error {
		_, _, err := c.PullRequests.Edit(t.Context(), "acme", "api", 1, pr)
		return err
	}
	if p := s.Pulls(repo)[0]; p.Files != 2 || p.Commits != 2 {
		t.Fatalf("against main: %d files in %d commits, want 2 in 2", p.Files, p.Commits)
	}
	if err := edit(&github.PullRequest{Base: &github.PullRequestBranch{Ref: new("release")}}); err != nil {
		t.Fatal(err)
	}
	if p := s.Pulls(repo)[0]; p.Base != "release" || p.Files != 1 || p.Commits != 1 {
		t.Errorf("against %s: %d files in %d commits, want 1 in 1", p.Base, p.Files, p.Commits)
	}
	wantError(t, edit(&github.PullRequest{Base: &github.PullRequestBranch{Ref: new("none")}}), 422, "base")
	wantError(t, edit(&github.PullRequest{Body: new(strings.Repeat("x", 65_537))}), 422, "Body is too long")
	for _, state := range []string{"closed", "open"} {
		if err := edit(&github.PullRequest{State: &state}); err != nil {
			t.Fatal(err)
		}
	}
	// What bob does is delivered at once, what the client did when it is its turn.
	if err := s.Wait(t.Context(), (*githubfake.Server).Settled); err != nil {
		t.Fatal(err)
	}
	if err := s.ChangePR(t.Context(), repo, 1, "merged", "bob"); err != nil {
		t.Fatal(err)
	}
	wantError(t, edit(&github.PullRequest{State: new("open")}), 422, "state cannot be changed")
	if err := s.Wait(t.Context(), (*githubfake.Server).Settled); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"pull_request opened", "pull_request edited", "pull_request closed", "pull_request reopened",
		"pull_request closed",
	}
	if diff := cmp.Diff(want, rc.seen()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

func TestChangePR(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	rc := receive(t, s)
	n := open(t, s)
	for _, action := range []string{"converted_to_draft", "ready_for_review", "closed", "reopened", "merged"} {
		if err := s.ChangePR(t.Context(), repo, n, action, "bob"); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"pull_request opened", "pull_request converted_to_draft", "pull_request ready_for_review",
		"pull_request closed", "pull_request reopened", "pull_request closed",
	}
	if diff := cmp.Diff(want, rc.seen()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if e := lastPull(t, rc); !e.GetPullRequest().GetMerged() || e.GetPullRequest().MergedAt == nil {
		t.Error("the last closed is not a merge")
	}
	merged := must(r.Git(t.Context(), "show", "main:README.md"))(t)
	if !strings.Contains(merged, "TWO") {
		t.Errorf("main after the merge: %q", merged)
	}
	if err := s.ChangePR(t.Context(), repo, n, "approved", "bob"); err == nil {
		t.Error("an action that does not exist")
	}
}

func TestFork(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	rc := receive(t, s)
	n := must(s.OpenPR(t.Context(), githubfake.PR{
		Repo: repo, Head: "evil", User: "mallory", Fork: true, Files: map[string]string{"a": "a"},
	}))(t)
	pr := lastPull(t, rc).GetPullRequest()
	if got := pr.GetHead().GetRepo(); got.GetFullName() != "mallory/api" || !got.GetFork() {
		t.Errorf("head is %s, fork %v", got.GetFullName(), got.GetFork())
	}
	if _, err := r.SHA("refs/heads/evil"); err == nil {
		t.Error("the repository itself has the fork's branch")
	}
	sha := must(s.PushPR(t.Context(), repo, n, map[string]string{"a": "b"}))(t)
	if got := must(r.SHA("refs/pull/1/head"))(t); got != sha {
		t.Errorf("refs/pull/1/head = %s, want %s", got, sha)
	}

	fork := s.Repo("mallory/api")
	g := newGit(t, "ghp_test")
	g.run(t, "clone", fork.CloneURL(), "work")
	g.dir += "/work"
	if _, err := g.try(t, "push", "origin", "HEAD:refs/heads/x"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("push to someone else's fork: %v", err)
	}

	if err := s.DeleteFork(repo, n); err != nil {
		t.Fatal(err)
	}
	if err := s.ChangePR(t.Context(), repo, n, "closed", "mallory"); err != nil {
		t.Fatal(err)
	}
	pr = lastPull(t, rc).GetPullRequest()
	if pr.Head.Repo != nil || pr.GetHead().GetSHA() != sha {
		t.Error("head.repo is not null after the fork was deleted")
	}
	if _, err := s.PushPR(t.Context(), repo, n, nil); err == nil {
		t.Error("pushed to a deleted fork")
	}
}

func TestRepositoryAndPermission(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	c := newClient(t, s, "ghp_test")
	got, _, err := c.Repositories.Get(t.Context(), "ACME", "api")
	if err != nil {
		t.Fatal(err)
	}
	if got.GetDefaultBranch() != "main" || !got.GetPrivate() || got.GetCloneURL() != r.CloneURL() {
		t.Errorf("repository: %s private %v %s", got.GetDefaultBranch(), got.GetPrivate(), got.GetCloneURL())
	}
	_, _, err = c.Repositories.Get(t.Context(), "acme", "none")
	wantError(t, err, 404, "Not Found")

	s.SetPermission(repo, "Alice", "write")
	for user, want := range map[string]string{"alice": "write", "acme": "admin", "mallory": "none"} {
		level, _, err := c.Repositories.GetPermissionLevel(t.Context(), "acme", "api", user)
		if err != nil {
			t.Fatal(err)
		}
		if level.GetPermission() != want || level.GetUser().GetLogin() != user {
			t.Errorf("%s may %s, want %s", user, level.GetPermission(), want)
		}
	}
	_, _, err = c.Repositories.GetPermissionLevel(t.Context(), "acme", "api", "errand[bot]")
	wantError(t, err, 404, "errand[bot] is not a user")
	r.SetPrivate(false)
	level, _, err := c.Repositories.GetPermissionLevel(t.Context(), "acme", "api", "mallory")
	if err != nil || level.GetPermission() != "read" {
		t.Errorf("a stranger may %s (%v) what is public, want read", level.GetPermission(), err)
	}
}
