package github

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/untrusted"
)

// maxListed is how many open pull requests PullRequests lists.
const maxListed = 20

// split returns the owner and the name of a repository, as go-github wants them.
func (f *Forge) split(repo string) (owner, name string) {
	owner, name, _ = strings.Cut(f.path(repo), "/")
	return owner, name
}

// PullRequest reads a pull request. The error is forge.ErrNotFound if it is an issue, or cannot be seen, and a *forge.RefusedError if trying
// again does not help.
func (f *Forge) PullRequest(ctx context.Context, repo string, number int) (forge.PullRequest, error) {
	what := fmt.Sprintf("read %s#%d", repo, number)
	gh, err := f.Client(ctx, repo, 0)
	if err != nil {
		return forge.PullRequest{}, f.Explain(what, err)
	}
	owner, name := f.split(repo)
	pr, _, err := gh.PullRequests.Get(ctx, owner, name, number)
	switch {
	case StatusCode(err) == http.StatusNotFound:
		return forge.PullRequest{}, fmt.Errorf("%s: %w", what, forge.ErrNotFound)
	case err != nil:
		return forge.PullRequest{}, f.Explain(what, err)
	}
	return describe(repo, pr), nil
}

// PullRequests lists the newest open pull requests of a repository. A *forge.RefusedError means that trying again does not help.
func (f *Forge) PullRequests(ctx context.Context, repo string) ([]forge.PullRequest, error) {
	what := "list the pull requests of " + repo
	gh, err := f.Client(ctx, repo, 0)
	if err != nil {
		return nil, f.Explain(what, err)
	}
	owner, name := f.split(repo)
	found, _, err := gh.PullRequests.List(ctx, owner, name, &github.PullRequestListOptions{
		State: "open", Sort: "created", Direction: "desc", ListOptions: github.ListOptions{PerPage: maxListed},
	})
	if err != nil {
		return nil, f.Explain(what, err)
	}
	list := make([]forge.PullRequest, len(found))
	for i, pr := range found {
		list[i] = describe(repo, pr)
	}
	return list, nil
}

func describe(repo string, pr *github.PullRequest) forge.PullRequest {
	return forge.PullRequest{
		Repo: repo, Number: pr.GetNumber(), Title: untrusted.Line(pr.GetTitle(), 200), Author: pr.GetUser().GetLogin(), Base: pr.GetBase().GetRef(),
		URL: pr.GetHTMLURL(), Draft: pr.GetDraft(), Fork: IsFork(pr),
	}
}

// IsFork reports whether the head of a pull request is in another repository. GitHub reports no repository for a deleted fork; a pull
// request that does not say where it comes from counts as a fork.
func IsFork(pr *github.PullRequest) bool {
	from := pr.GetHead().GetRepo().GetID()
	return from == 0 || from != pr.GetBase().GetRepo().GetID()
}

// Pages goes through the pages of a list, and maps each element with read. An error ends the sequence.
func Pages[T, V any](opt *github.ListOptions, read func(T) V, list func() ([]T, *github.Response, error)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for {
			page, resp, err := list()
			if err != nil {
				var zero V
				yield(zero, err)
				return
			}
			for _, one := range page {
				if !yield(read(one), nil) {
					return
				}
			}
			if resp.NextPage == 0 {
				return
			}
			opt.Page = resp.NextPage
		}
	}
}
