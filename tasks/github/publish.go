package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

var _ tasks.Publisher = (*Source)(nil)

// Propose opens a draft pull request for a branch of ours, or finds the one that is open and writes into it what the work is about.
// Nothing else of it is touched: its title, what people wrote around our section, and its state are theirs.
func (s *Source) Propose(ctx context.Context, t tasks.Task, w tasks.Work) (tasks.PullRequest, error) {
	if s.watched(w.Repo) { // since the task was given
		return tasks.PullRequest{}, &tasks.InputError{Sentence: onlyWatched}
	}
	gh, err := s.clients.of(ctx, origin{Repo: w.Repo})
	if err != nil {
		return tasks.PullRequest{}, s.unproposed("reach "+w.Repo, err)
	}
	p := proposal{gh: gh, task: t, work: w, section: s.section(t, w)}
	p.owner, p.name, _ = strings.Cut(w.Repo, "/")
	pr, err := p.find(ctx)
	if err == nil && pr == nil {
		pr, err = p.create(ctx)
		if status(err) == http.StatusUnprocessableEntity { // perhaps somebody was faster
			if found, ferr := p.find(ctx); ferr == nil && found != nil {
				pr, err = found, nil
			}
		}
	}
	if err == nil {
		err = p.update(ctx, pr)
	}
	if err != nil {
		return tasks.PullRequest{}, s.unproposed("open a pull request in "+w.Repo, err)
	}
	return tasks.PullRequest{
		Number: pr.GetNumber(), URL: pr.GetHTMLURL(), Thread: fmt.Sprintf("github/%s#%d", w.Repo, pr.GetNumber()),
	}, nil
}

// Checks are those of the repository's settings on that branch: all of them, or an error. The errors are as for Pull.
func (s *Source) Checks(ctx context.Context, repo, base string) ([]string, error) {
	o := origin{Repo: repo}
	gh, err := s.clients.of(ctx, o)
	if err != nil {
		return nil, s.sorted("reach "+repo, err)
	}
	c, _, err := s.settings(ctx, gh, o, base)
	if err == nil && c.Unread {
		err = &tasks.InputError{Sentence: "Not all checks in " + settingsFile + " of " + repo + " can be read."}
	}
	return c.Checks, err
}

// unproposed is sorted, with GitHub's own words where what we asked for is not possible.
func (s *Source) unproposed(what string, err error) error {
	if _, limited := retryAfter(err); status(err) == http.StatusUnprocessableEntity && !limited {
		return &tasks.InputError{Sentence: "GitHub did not let errand " + what + ": " + line(refusals(err), 300) + "."}
	}
	return s.sorted(what, err)
}

// proposal is one pull request to be.
type proposal struct {
	gh          *github.Client
	owner, name string
	task        tasks.Task
	work        tasks.Work
	section     string // what we write into it
}

// find gives the open pull request of the branch, nil when there is none.
func (p proposal) find(ctx context.Context) (*github.PullRequest, error) {
	list, _, err := p.gh.PullRequests.List(ctx, p.owner, p.name, &github.PullRequestListOptions{
		State: "open", Head: p.owner + ":" + p.work.Branch, ListOptions: github.ListOptions{PerPage: 100},
	})
	if err != nil {
		return nil, fmt.Errorf("list pull requests: %w", err)
	}
	for _, pr := range list {
		// GitHub leaves out a filter that it does not understand.
		if pr.GetHead().GetRef() == p.work.Branch && pr.GetHead().GetRepo().GetID() == pr.GetBase().GetRepo().GetID() {
			return pr, nil
		}
	}
	return nil, nil
}

// create opens it. Where a repository's plan has no drafts it is opened all the same: work that nobody sees is of no use.
func (p proposal) create(ctx context.Context) (*github.PullRequest, error) {
	ask := &github.NewPullRequest{
		Title: new(cmp.Or(line(p.work.Title, maxTitle), p.work.Branch)), Head: &p.work.Branch, Base: &p.work.Base, Body: &p.section, Draft: new(true),
	}
	pr, _, err := p.gh.PullRequests.Create(ctx, p.owner, p.name, ask)
	if status(err) == http.StatusUnprocessableEntity && strings.Contains(strings.ToLower(refusals(err)), "draft") {
		ask.Draft = new(false)
		pr, _, err = p.gh.PullRequests.Create(ctx, p.owner, p.name, ask)
	}
	if err != nil {
		return nil, fmt.Errorf("create pull request: %w", err)
	}
	return pr, nil
}

// update replaces our section, if it is there and is not of this commit or of a newer task. Where somebody has taken it out, it stays out.
func (p proposal) update(ctx context.Context, pr *github.PullRequest) error {
	old, ok := readSection(pr.GetBody())
	if !ok || old.commit == p.work.Commit || old.task > p.task.ID {
		return nil
	}
	body := pr.GetBody()
	body = body[:old.start] + p.section + body[old.end:]
	if len(body) > maxComment {
		return nil // others have written most of it
	}
	return p.write(ctx, pr.GetNumber(), body)
}

func (p proposal) write(ctx context.Context, number int, body string) error {
	if _, _, err := p.gh.PullRequests.Edit(ctx, p.owner, p.name, number, &github.PullRequest{Body: &body}); err != nil {
		return fmt.Errorf("edit pull request %d: %w", number, err)
	}
	return nil
}
