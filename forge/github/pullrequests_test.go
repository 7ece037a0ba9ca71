package github

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func TestPullRequests(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	files := map[string]string{"main.go": "package main // new\n"}
	for _, pr := range []githubfake.PR{
		{Repo: repo, Head: "a", Files: files, Title: "Fix\nthe total", User: "ann"},
		{Repo: repo, Head: "b", Files: files, Title: "Draft", Draft: true},
		{Repo: repo, Head: "c", Files: files, Title: "A stranger's", User: "eve", Fork: true},
		{Repo: repo, Head: "d", Files: files, Title: "Closed"},
	} {
		must(w.hub.OpenPR(w.Context(), pr))
	}
	if err := w.hub.ChangePR(w.Context(), repo, 4, "closed", "octocat"); err != nil {
		w.Fatal(err)
	}
	at := func(n, title, author string) forge.PullRequest {
		return forge.PullRequest{
			Repo: repo, Title: title, Author: author, Base: "main", URL: w.hub.URL() + "/acme/api/pull/" + n,
		}
	}
	first, second, third := at("1", "Fix the total", "ann"), at("2", "Draft", "octocat"), at("3",
		"A stranger's", "eve")
	first.Number, second.Number, third.Number = 1, 2, 3
	second.Draft, third.Fork = true, true
	if diff := cmp.Diff([]forge.PullRequest{third, second, first},
		must(w.forge.PullRequests(w.Context(), repo))); diff != "" {
		w.Error(diff)
	}
	if diff := cmp.Diff(third, must(w.forge.PullRequest(w.Context(), repo, 3))); diff != "" {
		w.Error(diff)
	}
	if _, err := w.forge.PullRequest(w.Context(), repo, 9); !errors.Is(err, forge.ErrNotFound) {
		w.Errorf("no such pull request: %v", err)
	}
	if _, err := w.forge.PullRequests(w.Context(), "acme/none"); err == nil {
		w.Error("pull requests of no repository")
	}
}
