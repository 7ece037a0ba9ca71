package github

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

func TestPulls(t *testing.T) {
	both(t, func(w *world) {
		files := map[string]string{"main.go": "package main // new\n"}
		for _, pr := range []githubfake.PR{
			{Repo: repo, Head: "a", Files: files, Title: "Mend\nthe total", User: "ann"},
			{Repo: repo, Head: "b", Files: files, Title: "Draft", Draft: true},
			{Repo: repo, Head: "c", Files: files, Title: "A stranger's", User: "eve", Fork: true},
			{Repo: repo, Head: "d", Files: files, Title: "Closed"},
		} {
			must(w.hub.OpenPR(w.Context(), pr))
		}
		if err := w.hub.ChangePR(w.Context(), repo, 4, "closed", "octocat"); err != nil {
			w.Fatal(err)
		}
		at := func(n, title, author string) tasks.Pull {
			return tasks.Pull{Repo: repo, Title: title, Author: author, Base: "main", URL: w.hub.URL() + "/acme/api/pull/" + n}
		}
		first, second, third := at("1", "Mend the total", "ann"), at("2", "Draft", "octocat"), at("3", "A stranger's", "eve")
		first.Number, second.Number, third.Number = 1, 2, 3
		second.Draft, third.Fork = true, true
		if diff := cmp.Diff([]tasks.Pull{third, second, first}, must(w.src.Pulls(w.Context(), repo))); diff != "" {
			w.Error(diff)
		}
		if diff := cmp.Diff(third, must(w.src.Pull(w.Context(), repo, 3))); diff != "" {
			w.Error(diff)
		}
		if _, err := w.src.Pull(w.Context(), repo, 9); !errors.Is(err, tasks.ErrNotFound) {
			w.Errorf("no such pull request: %v", err)
		}
		if _, err := w.src.Pulls(w.Context(), "acme/none"); err == nil {
			w.Error("pull requests of no repository")
		}
	})
}
