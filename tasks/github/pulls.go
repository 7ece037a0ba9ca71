package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

// present is the pull request of a task as it is now, and the client for it.
func (s *Source) present(ctx context.Context, o origin) (*github.Client, *github.PullRequest, error) {
	gh, err := s.clients.of(ctx, o)
	if err != nil {
		return nil, nil, s.sorted("reach "+o.String(), err)
	}
	owner, name := o.path()
	pr, _, err := gh.PullRequests.Get(ctx, owner, name, o.Number)
	if err != nil {
		return nil, nil, s.sorted("read "+o.String(), err)
	}
	return gh, pr, nil
}

// listed is how many open pull requests are listed.
const listed = 20

// Pull looks at a pull request. tasks.ErrNotFound where there is none, which may be an issue or a repository that we do not see. An
// *tasks.InputError says that trying again does not help.
func (s *Source) Pull(ctx context.Context, repo string, number int) (tasks.Pull, error) {
	what := fmt.Sprintf("read %s#%d", repo, number)
	gh, err := s.clients.of(ctx, origin{Repo: repo})
	if err != nil {
		return tasks.Pull{}, s.sorted(what, err)
	}
	owner, name, _ := strings.Cut(repo, "/")
	pr, _, err := gh.PullRequests.Get(ctx, owner, name, number)
	switch {
	case status(err) == http.StatusNotFound:
		return tasks.Pull{}, fmt.Errorf("%s: %w", what, tasks.ErrNotFound)
	case err != nil:
		return tasks.Pull{}, s.sorted(what, err)
	}
	return pullOf(repo, pr), nil
}

// Pulls lists the newest open pull requests of a repository, some twenty. The errors are as for Pull, but for tasks.ErrNotFound.
func (s *Source) Pulls(ctx context.Context, repo string) ([]tasks.Pull, error) {
	what := "list the pull requests of " + repo
	gh, err := s.clients.of(ctx, origin{Repo: repo})
	if err != nil {
		return nil, s.sorted(what, err)
	}
	owner, name, _ := strings.Cut(repo, "/")
	found, _, err := gh.PullRequests.List(ctx, owner, name, &github.PullRequestListOptions{
		State: "open", Sort: "created", Direction: "desc", ListOptions: github.ListOptions{PerPage: listed},
	})
	if err != nil {
		return nil, s.sorted(what, err)
	}
	list := make([]tasks.Pull, len(found))
	for i, pr := range found {
		list[i] = pullOf(repo, pr)
	}
	return list, nil
}

func pullOf(repo string, pr *github.PullRequest) tasks.Pull {
	from := pr.GetHead().GetRepo().GetID()
	return tasks.Pull{
		Repo: repo, Number: pr.GetNumber(), Title: line(pr.GetTitle(), 200), Author: pr.GetUser().GetLogin(), Base: pr.GetBase().GetRef(),
		URL: pr.GetHTMLURL(), Draft: pr.GetDraft(), Fork: from == 0 || from != pr.GetBase().GetRepo().GetID(),
	}
}
